/* See torch-key.h. Read from the end: what stands in front varies most. */
#include "nboxd/store/torch-key.h"

#include <string.h>

#define BARRIER_WORD "store_based_barrier_key:"
#define LAST_WORD ":last_worker"
#define ROOT_WORD "UniqueNCCLID:"
#define DEFAULT_WORD "default_pg/0"
#define STORE_WORD "/nccl_storekey_"

static struct store_bytes from_text(const char *text)
{
	return (struct store_bytes){(const uint8_t *)text, strlen(text)};
}

static bool is_equal(struct store_bytes a, struct store_bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Cuts @word off the end (the front) of *b. Return: whether it stood there. */
static bool cut_end(struct store_bytes *b, const char *word)
{
	size_t n = strlen(word);

	if (b->n < n || memcmp(b->p + b->n - n, word, n) != 0)
		return false;
	b->n -= n;
	return true;
}

static bool cut_front(struct store_bytes *b, const char *word)
{
	size_t n = strlen(word);

	if (b->n < n || memcmp(b->p, word, n) != 0)
		return false;
	b->p += n;
	b->n -= n;
	return true;
}

/* Splits *b at its last "//": *b keeps the head. Return: the tail; all, when none. */
static struct store_bytes cut_tail(struct store_bytes *b)
{
	struct store_bytes all = *b;

	for (size_t i = b->n; i-- > 1;) {
		if (b->p[i] != '/' || b->p[i - 1] != '/')
			continue;
		b->n = i - 1;
		return (struct store_bytes){all.p + i + 1, all.n - i - 1};
	}
	b->n = 0;
	return all;
}

/* Digits at the front of *b, cut off. Return: whether there were some, below 2^32. */
static bool cut_number(struct store_bytes *b, uint32_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < b->n && b->p[n] >= '0' && b->p[n] <= '9'; n++) {
		v = v * 10 + (uint64_t)(b->p[n] - '0');
		if (v > UINT32_MAX)
			return false;
	}
	if (n == 0)
		return false;
	b->p += n;
	b->n -= n;
	*ret = (uint32_t)v;
	return true;
}

static bool is_device(struct store_bytes b)
{
	static const char *const names[] = {"cuda", "cpu", "xpu", "hpu", "mps", "meta"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_equal(b, from_text(names[i])))
			return true;
	return false;
}

/* init_process_group(store=...): no default_pg, but the default group's name is still "0". All
 * stands below PREFIX/0; asked for only where a device follows, since PREFIX may be anything. */
static bool take_group_of_own_store(struct store_bytes head, struct torch_key *k)
{
	struct store_bytes top = head, rest = head;

	for (size_t i = 2; i < head.n; i++)
		if (head.p[i] == '/' && head.p[i - 1] == '/') {
			top.n = i - 1;
			break;
		}
	if (!cut_end(&top, "/0"))
		return false;
	k->is_default = top.n + 2 == head.n;
	k->group = k->is_default ? (struct store_bytes){head.p + head.n - 1, 1} : cut_tail(&rest);
	return k->group.n > 0;
}

/* Where the group's prefix ends in *head. Return: whether this is below a default group. */
static bool take_group(struct store_bytes head, struct torch_key *k)
{
	struct store_bytes rest = head, name;

	if (cut_end(&rest, DEFAULT_WORD) && (rest.n == 0 || rest.p[rest.n - 1] == '/')) {
		k->is_default = true;
		k->group = (struct store_bytes){head.p + head.n - 1, 1};
		return true;
	}
	rest = head;
	name = cut_tail(&rest);
	for (struct store_bytes at = rest; at.n > 0; (void)cut_tail(&at)) {
		struct store_bytes end = at;

		if (cut_end(&end, DEFAULT_WORD) && (end.n == 0 || end.p[end.n - 1] == '/')) {
			k->group = name;
			return name.n > 0;
		}
	}
	return k->device.n > 0 && take_group_of_own_store(head, k);
}

static const uint8_t *find(struct store_bytes b, const char *word)
{
	return b.n ? memmem(b.p, b.n, word, strlen(word)) : NULL;
}

static bool parse_barrier(struct store_bytes key, struct torch_key *k)
{
	const uint8_t *at = find(key, BARRIER_WORD);
	struct store_bytes name, head;

	if (!at)
		return false;
	head = (struct store_bytes){key.p, (size_t)(at - key.p)};
	name = (struct store_bytes){at + strlen(BARRIER_WORD),
				    key.n - head.n - strlen(BARRIER_WORD)};
	k->kind = cut_end(&name, LAST_WORD) ? TORCH_BARRIER_LAST : TORCH_BARRIER;
	k->group = name;
	k->is_default = is_equal(name, from_text("0"));
	/* in the group's own store: .../NAME//store_based_barrier_key:NAME */
	k->is_local = cut_end(&head, "//") && is_equal(cut_tail(&head), name);
	return true;
}

/* Nothing more; or what torch 2.15 puts behind a communicator's key, which is a prefix there. */
static bool is_end(struct store_bytes tail)
{
	uint32_t n;

	return tail.n == 0 ||
	       (cut_front(&tail, STORE_WORD) && cut_number(&tail, &n) && tail.n == 0);
}

/* What stands behind the last "//". */
static bool parse_tail(struct store_bytes tail, struct torch_key *k)
{
	if (cut_front(&tail, ROOT_WORD)) {
		k->kind = TORCH_ID_ROOT;
		return cut_number(&tail, &k->rank) && tail.n == 0;
	}
	if (!cut_number(&tail, &k->rank))
		return false;
	k->kind = TORCH_ID;
	if (tail.n == 0)
		return !is_equal(k->device, from_text("cpu"));
	if (cut_front(&tail, ":")) {
		k->kind = TORCH_ID_PAIR;
		return cut_number(&tail, &k->other) && is_end(tail) && k->rank < k->other;
	}
	if (tail.n > 1 && tail.p[1] == STORE_WORD[1])
		return is_end(tail);
	k->kind = TORCH_GLOO;
	return is_equal(k->device, from_text("cpu")) && cut_front(&tail, "/") &&
	       cut_number(&tail, &k->rank) && tail.n == 0;
}

/* A key that is none of those, but lies in some group's store: .../default_pg/0//7//cuda//KEY.
 * Names stand behind each other up to the device, the last one is the group's. */
static struct torch_key parse_other(struct store_bytes key)
{
	static const char root[] = DEFAULT_WORD "//";
	struct torch_key k = {.kind = TORCH_OTHER};
	const uint8_t *at = find(key, root), *end = key.p + key.n, *next;

	if (!at || (at > key.p && at[-1] != '/'))
		return k;
	k.group = (struct store_bytes){at + strlen(DEFAULT_WORD) - 1, 1};
	for (at += strlen(root); (next = memmem(at, (size_t)(end - at), "//", 2)); at = next + 2) {
		struct store_bytes name = {at, (size_t)(next - at)};

		if (is_device(name))
			break;
		k.group = name;
	}
	k.is_default = is_equal(k.group, from_text("0"));
	return k;
}

struct torch_key torch_key_parse(struct store_bytes key)
{
	struct store_bytes head = key, tail, rest;
	struct torch_key k = {.kind = TORCH_OTHER};

	if (is_equal(key, from_text("init/"))) {
		k.kind = TORCH_WORKERS;
		return k;
	}
	if (parse_barrier(key, &k))
		return k;
	tail = cut_tail(&head);
	rest = head;
	k.device = cut_tail(&rest);
	if (is_device(k.device))
		head = rest;
	else
		k.device = (struct store_bytes){NULL, 0};
	return take_group(head, &k) && parse_tail(tail, &k) ? k : parse_other(key);
}
