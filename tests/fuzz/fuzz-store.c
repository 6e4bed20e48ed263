/* Bytes from several clients of the TCPStore server in turn. Each piece of the input begins with
 * a byte that names the client (two bits) and says whether it has shown the magic number before,
 * goes afterwards, and reads its replies (one bit each); a byte with the length of the piece
 * follows. The policy answers for keys that are missing. */
#include "fuzz.h"

#include "nboxd/store/client.h"
#include "nboxd/store/policy.h"

#define CLIENTS 4

static struct store *store;
static struct store_client *clients[CLIENTS];
static struct buffer kept[CLIENTS]; /* not served yet */
static int is_waiting[CLIENTS];
static const uint32_t real[] = {4, 5};
static const struct policy_world world = {8, real, 2};

static void on_output(void *client_owner, const void *bytes, size_t n)
{
	(void)client_owner;
	(void)bytes;
	(void)n;
}

static void on_wait(void *client_owner, bool begins)
{
	int *p = client_owner;

	if (*p == begins)
		abort();
	*p = begins;
}

static void on_missing(void *owner, void *client_owner, struct store_bytes key)
{
	static const uint8_t id[128] = {1};
	struct torch_key k = torch_key_parse(key);
	struct policy_verdict v = policy_on_missing(&world, &k, NULL, NULL);
	char text[800];

	(void)owner;
	(void)client_owner;
	if (!*policy_advice(&world, &k, &v, text, sizeof(text)))
		abort();
	if (v.answer == POLICY_INVENT && store_set(store, key, (struct store_bytes){id, 128}) < 0)
		abort();
}

static int64_t initial_count(void *owner, struct store_bytes key, int64_t n)
{
	struct torch_key k = torch_key_parse(key);

	(void)owner;
	return policy_initial_count(&world, &k, n);
}

static const struct store_events events = {.on_output = on_output,
					   .on_wait = on_wait,
					   .on_missing = on_missing,
					   .initial_count = initial_count};

static void end(unsigned i)
{
	if ((clients[i] && store_client_n_awaited(clients[i]) > 0) != (is_waiting[i] != 0))
		abort();
	clients[i] = store_client_free(clients[i]);
	buffer_deinit(&kept[i]);
	if (is_waiting[i])
		abort();
}

static int feed(unsigned i, const void *data, size_t n)
{
	struct buffer *b = &kept[i];
	struct err err = {""};
	size_t n_taken = 0;
	int r;

	if (buffer_add(b, data, n) < 0)
		abort();
	r = store_client_feed(clients[i], b->data, b->n, &n_taken, &err);
	if (!r != !err.text[0] || n_taken > b->n)
		abort();
	b->n -= n_taken;
	if (n_taken)
		memmove(b->data, b->data + n_taken, b->n);
	return r;
}

static void piece(uint8_t how, const uint8_t *data, size_t n)
{
	const uint32_t magic = STORE_MAGIC;
	const uint8_t validate = STORE_VALIDATE;
	unsigned i = how % CLIENTS;
	int r;

	if (!clients[i]) {
		if (store_client_new(store, &is_waiting[i], &clients[i]) < 0)
			abort();
		if (how & 4) {
			feed(i, &validate, 1);
			feed(i, &magic, 4);
		}
	}
	r = feed(i, data, n);
	if (how & 16)
		store_client_set_unread(clients[i], 0);
	if (r < 0 || how & 8)
		end(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_counts n;

	if (store_new(&events, NULL, &store) < 0)
		abort();
	while (size >= 2) {
		uint8_t how = data[0];
		size_t len = data[1] < size - 2 ? data[1] : size - 2;

		piece(how, data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		end(i);
	store_clear(store);
	n = store_counts(store);
	if (n.n_keys || n.n_bytes || n.n_waits || n.n_clients || n.n_client_bytes)
		abort();
	store = store_free(store);
	return 0;
}
