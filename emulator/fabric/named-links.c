/* See fabric.h: links by name. A name is two words with a number or "*" each, one for leaves and
 * pods, and a direction. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "fabric/leaf.h"
#include "fabric/link-number.h"

#define WORD 16
#define ANY UINT32_MAX
#define LINKS_MAX (1u << 22) /* that one name may stand for */

struct pattern {
	enum link_kind kind;
	uint32_t a, b;
	int direction; /* -1: both */
};

static const struct {
	const char *a, *b;
	enum link_kind kind;
} forms[] = {
	{"node", "gpu", LINK_GPU}, {"node", "pcie", LINK_PCIE}, {"node", "nic", LINK_NIC},
	{"leaf", "", LINK_LEAF},   {"pod", "", LINK_POD},       {"group", "to", LINK_GROUP},
	{"sw", "sw", LINK_CABLE},
};

/* Takes "node3." or "node*." from @at. Return: what follows; NULL: no such word. */
static const char *take(const char *at, char word[WORD], uint32_t *ret_number)
{
	size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz");
	char *end = NULL;

	if (!n || n >= WORD)
		return NULL;
	memcpy(word, at, n);
	word[n] = '\0';
	at += n;
	if (*at == '*') {
		*ret_number = ANY;
		return at + 1;
	}
	if (!isdigit((unsigned char)*at) || strspn(at, "0123456789") > 8)
		return NULL;
	*ret_number = (uint32_t)strtoul(at, &end, 10);
	return end;
}

static int direction_of(const char *text)
{
	static const char *const names[] = {"out", "in", "up", "down"};

	for (int i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return i % 2;
	return -1;
}

static int parse(const char *name, struct pattern *ret)
{
	char a[WORD], b[WORD] = "";
	const char *at = take(name, a, &ret->a), *second;

	ret->b = 0;
	second = at && *at == '.' ? take(at + 1, b, &ret->b) : NULL;
	at = second ? second : at;
	if (!second)
		b[0] = '\0';
	if (!at)
		return -ENOENT;
	ret->direction = *at == '.' ? direction_of(at + 1) : -1;
	if (*at && ret->direction < 0)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (strcmp(forms[i].a, a) == 0 && strcmp(forms[i].b, b) == 0) {
			ret->kind = forms[i].kind;
			return 0;
		}
	return -ENOENT;
}

static uint32_t n_first(const struct fabric *f, enum link_kind kind)
{
	switch (kind) {
	case LINK_LEAF:
		return leaf_count(f);
	case LINK_POD:
		return f->network.kind == FABRIC_FAT_TREE ? leaf_pod_count(f) : 0;
	case LINK_GROUP:
		return f->network.kind == FABRIC_DRAGONFLY ? leaf_pod_count(f) : 0;
	case LINK_CABLE:
		return f->network.kind == FABRIC_CABLES ? (uint32_t)f->n_cables : 0;
	case LINK_GPU:
	case LINK_PCIE:
	case LINK_NIC:
	case LINK_KINDS:
	default:
		return f->n_nodes;
	}
}

static uint32_t n_second(const struct fabric *f, enum link_kind kind, uint32_t a)
{
	const struct fabric_class *c = kind <= LINK_NIC ? fabric_class_of(f, a) : NULL;

	switch (kind) {
	case LINK_GPU:
		return f->gpus_per_node;
	case LINK_PCIE:
		return c->pcie_bytes_per_ns > 0 && c->intra != FABRIC_PCIE ? f->gpus_per_node : 0;
	case LINK_NIC:
		return c->n_nics;
	case LINK_GROUP:
		return leaf_pod_count(f);
	case LINK_LEAF:
	case LINK_POD:
	case LINK_CABLE:
	case LINK_KINDS:
	default:
		return 1;
	}
}

struct links {
	uint64_t *numbers; /* owned */
	size_t n, n_allocated;
};

static int add(struct links *l, uint64_t link)
{
	uint64_t *more;

	if (l->n == LINKS_MAX)
		return -E2BIG;
	if (l->n == l->n_allocated) {
		l->n_allocated = l->n_allocated ? 2 * l->n_allocated : 16;
		more = realloc(l->numbers, l->n_allocated * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->numbers = more;
	}
	l->numbers[l->n++] = link;
	return 0;
}

static bool fits_cable(const struct fabric *f, const struct pattern *p, uint32_t i)
{
	const struct fabric_cable *c = &f->cables[i];

	return (p->a == ANY || p->a == c->from) && (p->b == ANY || p->b == c->to);
}

static int find(const struct fabric *f, const struct pattern *p, struct links *l)
{
	bool is_cable = p->kind == LINK_CABLE;
	bool is_one = p->a != ANY && !is_cable;
	int r = 0;
	uint32_t n = n_first(f, p->kind), a = is_one ? p->a : 0, end = is_one && a < n ? a + 1 : n;

	for (; a < end; a++) {
		uint32_t n_b = n_second(f, p->kind, a), b = is_cable || p->b == ANY ? 0 : p->b;

		if (is_cable && !fits_cable(f, p, a))
			continue;
		for (; b < n_b; b++) {
			bool has_back = p->kind != LINK_GROUP;

			if (p->kind == LINK_GROUP && a == b) {
				if (p->b != ANY)
					break;
				continue;
			}
			if (p->direction != LINK_IN)
				r = add(l, link_number(p->kind, a, b, 0));
			if (r == 0 && has_back && p->direction != LINK_OUT)
				r = add(l, link_number(p->kind, a, b, 1));
			if (r < 0)
				return r;
			if (p->b != ANY || is_cable)
				break;
		}
	}
	return 0;
}

/* The name that was meant, if one with the same numbers is near; else "". Return: @buf. */
static const char *repair(const char *name, char *buf, size_t size)
{
	static const char *const ends[] = {"", ".out", ".in", ".up", ".down"};
	char names[ARRAY_SIZE(forms) * ARRAY_SIZE(ends)][48], numbers[2][9] = {"0", "0"};
	const char *list[ARRAY_SIZE(names)], *near;
	const char *at = name;

	for (int i = 0; i < 2; i++) {
		at += strcspn(at, "*0123456789");
		if (*at)
			snprintf(numbers[i], sizeof(numbers[i]), "%.*s",
				 (int)strspn(at, "*0123456789"), at);
		at += strspn(at, "*0123456789");
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *b = forms[i / ARRAY_SIZE(ends)].b;

		snprintf(names[i], sizeof(names[i]), "%s%s%s%s%s%s", forms[i / ARRAY_SIZE(ends)].a,
			 numbers[0], b[0] ? "." : "", b, b[0] ? numbers[1] : "",
			 ends[i % ARRAY_SIZE(ends)]);
		list[i] = names[i];
	}
	near = suggest(name, list, ARRAY_SIZE(list));
	snprintf(buf, size, "%s", near ? near : "");
	return buf;
}

/* The sentence for a name that no link has. */
static int unknown(const struct fabric *f, const char *name, struct err *err)
{
	char near[64];
	struct pattern p;
	uint32_t n;

	if (parse(name, &p) < 0 && repair(name, near, sizeof(near))[0])
		return err_set(err, ENOENT, "no link is called '%.64s'; did you mean '%s'?", name,
			       near);
	if (parse(name, &p) < 0)
		return err_set(err, ENOENT,
			       "no link is called '%.64s'; names are node3.nic2.out, "
			       "node3.gpu5.in, node*.pcie0, leaf1.up, pod0.down, group0.to1, "
			       "sw0.sw1.in",
			       name);
	n = n_first(f, p.kind);
	if (!n)
		return err_set(err, ENOENT, "'%.64s': this network has no such links", name);
	if (p.kind != LINK_CABLE && p.a != ANY && p.a >= n)
		return err_set(err, ENOENT, "'%.64s': %u is too large; there are 0 to %u", name,
			       p.a, n - 1);
	n = p.kind == LINK_CABLE ? 0 : n_second(f, p.kind, p.a == ANY ? 0 : p.a);
	if (n && p.b != ANY && p.b >= n)
		return err_set(err, ENOENT, "'%.64s': %u is too large; there are 0 to %u", name,
			       p.b, n - 1);
	return err_set(err, ENOENT, "'%.64s': there is no such link", name);
}

int fabric_links_named(const struct fabric *f, const char *name, uint64_t **ret_links,
		       size_t *ret_n, struct err *err)
{
	struct links l = {0};
	struct pattern p;
	int r = parse(name, &p);

	if (r == 0)
		r = find(f, &p, &l);
	if (r == 0 && l.n) {
		*ret_links = l.numbers;
		*ret_n = l.n;
		return 0;
	}
	free(l.numbers);
	if (r == -E2BIG)
		return err_set(err, EINVAL, "'%.64s' names more than %u links", name, LINKS_MAX);
	if (r == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory for names of links");
	return unknown(f, name, err);
}
