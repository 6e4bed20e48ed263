/* See link-change.h. */
#include "config/link-change.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/spec.h"
#include "contention/usage-maker.h"
#include "fabric/leaf.h"
#include "fabric/link-number.h"

#define SLOWER_MAX 1e6
#define CONNECTIONS_MAX 65536

#define WHICH_HELP                                                                \
	"      node=<nodes>           or: all NICs of these nodes\n"              \
	"      rail=<numbers>         or: the NICs of that number of all nodes, " \
	"and the cables of the rail's leaves\n"                                   \
	"      rack=<numbers>         or: the cables up and down of these leaves\n"
#define WHEN_HELP                                                                                  \
	"      from=<time or steps>   since when, after the first op of the run; nbox perf, nbox " \
	"explain: of the op (default 0s)\n"
#define FOR_HELP                                                            \
	"      for=<time or steps>    for how long (default: to the end)\n" \
	"      every=<time or steps>  and again so much later, for ever (default: once)\n"

const char link_change_help[] =
	"  link       links of the fabric are slower, lose packets or are down; NCCL planned "
	"without it\n"
	"      name=<links>           links as --cable has them, or several: "
	"node3.nic2+leaf*.up\n" WHICH_HELP
	"      slower=<ratio>         their bandwidth, divided by this\n"
	"      bandwidth=<bandwidth>  or: the rate of each NIC and of each cable between switches, "
	"by its data sheet, as of --inter\n"
	"      loss=<ratio>           or: this part of all packets is lost and sent once more; "
	"RDMA that goes back to the lost one loses more\n"
	"      down=<time>            or: nothing crosses them for so long\n" WHEN_HELP FOR_HELP;
const char link_change_load_help[] =
	"  load       links of the fabric carry other jobs' traffic, too\n"
	"      link=<links>           links as --cable has them, or several: "
	"node3.nic2.out+leaf*.up\n" WHICH_HELP
	"      bandwidth=<bandwidth>  what that traffic takes of each link where it gets it; the "
	"rest it never sends (must be given)\n"
	"      connections=<count>    how many fair shares it gets at most (default 1)\n" WHEN_HELP
		FOR_HELP;

bool link_change_is_one(const char *text)
{
	return spec_is(text, "link") || spec_is(text, "load");
}

/* --- which links ---------------------------------------------------------------------------- */

static int add_named(struct link_change *c, const struct fabric *f, const char *name,
		     struct err *err)
{
	CLEANUP(freep) uint64_t *links = NULL;
	uint64_t *all;
	size_t n = 0;
	int r = fabric_links_named(f, name, &links, &n, err);

	if (r < 0)
		return r;
	all = realloc(c->links, (c->n_links + n) * sizeof(*all));
	if (!all)
		return err_set(err, ENOMEM, "out of memory for a list of links");
	memcpy(all + c->n_links, links, n * sizeof(*all));
	c->links = all;
	c->n_links += n;
	return 0;
}

static int add_names(struct link_change *c, const struct fabric *f, const char *names,
		     struct err *err)
{
	int r = 0;

	for (const char *end; names && r == 0; names = *end ? end + 1 : NULL) {
		char name[64];

		end = names + strcspn(names, "+");
		snprintf(name, sizeof(name), "%.*s", (int)(end - names), names);
		r = add_named(c, f, name, err);
	}
	return r;
}

static int add_leaf(struct link_change *c, const struct fabric *f, uint32_t leaf, struct err *err)
{
	char name[32];

	snprintf(name, sizeof(name), "leaf%u", leaf);
	return add_named(c, f, name, err);
}

static int add_node(struct link_change *c, const struct fabric *f, uint32_t node, struct err *err)
{
	char name[32];

	snprintf(name, sizeof(name), "node%u.nic*", node);
	return add_named(c, f, name, err);
}

static int add_rail(struct link_change *c, const struct fabric *f, uint32_t rail, struct err *err)
{
	uint32_t n_leaves = f->network.kind == FABRIC_RAIL ? leaf_count(f) : 0;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "node*.nic%u", rail);
	r = add_named(c, f, name, err);
	for (uint32_t leaf = rail; leaf < n_leaves && r == 0; leaf += leaf_rails(f))
		r = add_leaf(c, f, leaf, err);
	return r;
}

static uint32_t most_nics(const struct fabric *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n_classes; i++)
		n = f->classes[i].n_nics > n ? f->classes[i].n_nics : n;
	return n;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* @key says how @value names links. */
static int add_links(struct link_change *c, const struct fabric *f, const char *key,
		     const char *value, struct err *err)
{
	const struct {
		const char *key;
		uint32_t n;
		int (*add)(struct link_change *c, const struct fabric *f, uint32_t i,
			   struct err *err);
	} kinds[] = {{"node", f->n_nodes, add_node},
		     {"rail", most_nics(f), add_rail},
		     {"rack", leaf_count(f), add_leaf}};
	CLEANUP(freep) uint32_t *numbers = NULL;
	size_t n = 0, k = 0;
	int r;

	while (k < ARRAY_SIZE(kinds) && strcmp(kinds[k].key, key))
		k++;
	if (k == ARRAY_SIZE(kinds))
		return add_names(c, f, value, err);
	if (!kinds[k].n)
		return err_set(err, ENOENT, "%s=%.64s: fabric %s has no such thing", key, value,
			       f->name);
	r = units_numbers(value, key, kinds[k].n, &numbers, &n, err);
	for (size_t i = 0; i < n && r == 0; i++)
		r = kinds[k].add(c, f, numbers[i], err);
	return r;
}

static void sort_links(struct link_change *c)
{
	size_t n = 0;

	qsort(c->links, c->n_links, sizeof(*c->links), by_number);
	for (size_t i = 0; i < c->n_links; i++)
		if (!n || c->links[n - 1] != c->links[i])
			c->links[n++] = c->links[i];
	c->n_links = n;
}

/* --- what becomes of them ------------------------------------------------------------------- */

/* What was given. NULL: not. */
struct given {
	const char *which, *which_value; /* links */
	const char *how;                 /* slower, loss, down or bandwidth */
	double down_ns;
};

/* Two of one kind exclude each other. */
static int once(const char **given, const char *key, struct err *err)
{
	if (*given)
		return err_set(err, EINVAL, "%s and %s exclude each other: use two what-ifs",
			       *given, key);
	*given = key;
	return 0;
}

static int take_time(const char *key, const char *value, double *ret_ns, struct err *err)
{
	int r = units_time(value, ret_ns, err);

	return r == 0 && !(*ret_ns < 1e18)
		       ? err_set(err, EINVAL, "%s=%.64s is out of range", key, value)
		       : r;
}

static int take_how(struct link_change *c, struct given *g, const char *key, const char *value,
		    struct err *err)
{
	double x = 0;
	int r = once(&g->how, key, err);

	if (r == 0 && !strcmp(key, "down"))
		return take_time(key, value, &g->down_ns, err);
	if (r == 0 && !strcmp(key, "bandwidth"))
		return units_bandwidth(value, &c->bytes_per_ns, err);
	if (r == 0)
		r = units_ratio(value, &x, err);
	if (r < 0)
		return r;
	if (!strcmp(key, "loss") ? !(x > 0 && x < 1) : !(x > 1 && x <= SLOWER_MAX))
		return err_set(
			err, EINVAL,
			!strcmp(key, "loss")
				? "loss=%.64s is no part of packets between 0 and 1, such as "
				  "loss=1%%; where nothing gets through: down=TIME"
				: "slower=%.64s: a factor above 1, up to 1000000; what NCCL "
				  "shall know of, or a faster link: --cable",
			value);
	c->lost = !strcmp(key, "loss") ? x : 1 - 1 / x;
	return 0;
}

static int take_key(struct link_change *c, struct given *g, const char *key, const char *value,
		    struct err *err)
{
	static const char *const link_keys[] = {"name",   "node",      "rail", "rack",
						"slower", "bandwidth", "loss", "down",
						"from",   "for",       "every"};
	static const char *const load_keys[] = {"link",        "node", "rail", "rack", "bandwidth",
						"connections", "from", "for",  "every"};
	const char *const *keys = c->is_load ? load_keys : link_keys;
	size_t n = c->is_load ? ARRAY_SIZE(load_keys) : ARRAY_SIZE(link_keys), k = 0;
	uint64_t count = 1;
	int r;

	while (k < n && strcmp(keys[k], key))
		k++;
	if (k == n)
		return spec_unknown(key, keys, n, err);
	if (k < 4) {
		g->which_value = value;
		return once(&g->which, key, err);
	}
	r = when_take(&c->when, key, value, err);
	if (r != 1)
		return r;
	if (strcmp(key, "connections"))
		return take_how(c, g, key, value, err);
	r = units_count(value, &count, err);
	if (r == 0 && !(count > 0 && count <= CONNECTIONS_MAX))
		return err_set(err, EINVAL, "connections=%.64s: 1 to %d", value, CONNECTIONS_MAX);
	c->connections = (double)count;
	return r;
}

/* Bytes/ns that the link loses. */
static double lost_of(const struct link_change *c, const struct fabric *f, uint64_t link)
{
	bool is_all = link_kind(link) == LINK_LEAF && link_b(link) == 0;
	double cables = is_all ? link_cables(f, link_a(link)) : 1;
	struct fabric_link l;

	fabric_link(f, link, &l);
	return c->bytes_per_ns > 0
		       ? l.bytes_per_ns - c->bytes_per_ns * fabric_link_efficiency(f, link) * cables
		       : c->lost * l.bytes_per_ns;
}

/* Times and links, when all keys are known. */
static int finish(struct link_change *c, const struct given *g, const struct fabric *f,
		  struct err *err)
{
	bool is_down = g->how && !strcmp(g->how, "down");
	int r;

	if (!g->which)
		return err_set(err, EINVAL,
			       "say which links: %s=LINK such as node3.nic2, node=, rail= or rack=",
			       c->is_load ? "link" : "name");
	if (!g->how)
		return err_set(err, EINVAL,
			       c->is_load ? "say how much: bandwidth=RATE, such as 50Gbps"
					  : "say what becomes of them: slower=FACTOR, "
					    "bandwidth=RATE, loss=PART or down=TIME");
	if (is_down && c->when.lasts.is_given)
		return err_set(err, EINVAL, "down=TIME says for how long already: leave for= out");
	if (is_down && !(g->down_ns > 0))
		return err_set(err, EINVAL, "down=0s is no time at all");
	if (is_down) {
		c->lost = 1;
		c->when.lasts = (struct when_span){.x = g->down_ns, .is_given = true};
	}
	r = when_check(&c->when, err);
	if (r < 0)
		return r;
	if (g->how && !strcmp(g->how, "bandwidth") && !fabric_is_rate(c->bytes_per_ns))
		return err_set(err, EINVAL, "that bandwidth is impossible");
	if (!f)
		return err_set(err, EINVAL,
			       "there is no fabric whose links could be so: give --preset NAME or "
			       "--fabric FILE");
	r = add_links(c, f, g->which, g->which_value, err);
	if (r < 0)
		return r;
	sort_links(c);
	for (size_t i = 0; i < c->n_links && !c->is_load && c->bytes_per_ns > 0; i++)
		if (!(lost_of(c, f, c->links[i]) > 0))
			return err_set(err, EINVAL,
				       "that bandwidth is no less than one of these links has; "
				       "what NCCL shall know of, or a faster link: --cable");
	return 0;
}

int link_change_parse(const char *text, const struct fabric *f, struct link_change *ret,
		      struct err *err)
{
	struct link_change c = {.text = text, .is_load = spec_is(text, "load"), .connections = 1};
	struct given given = {0};
	struct spec spec;
	int r = spec_split(text, &spec, err);

	if (r)
		return r;
	for (size_t i = 0; i < spec.n && r == 0; i++)
		r = take_key(&c, &given, spec.pairs[i].key, spec.pairs[i].value, err);
	if (r == 0)
		r = finish(&c, &given, f, err);
	if (r) {
		free(c.links);
		return err_prefix(err, r, "'%.200s'", text);
	}
	*ret = c;
	return 0;
}

void link_changes_free(struct link_change *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].links);
	free(list);
}

/* Also what it is of where connections take one cable each of a leaf (fabric_ecmp()). */
static int add_usage(const struct link_change *c, const struct fabric *f, uint64_t link,
		     struct usage_maker *maker)
{
	bool is_leaf = f->network.ecmp && link_kind(link) == LINK_LEAF;
	uint32_t n = is_leaf ? link_cables(f, link_a(link)) : 0;
	int r = 0;

	for (uint32_t i = 0; i <= n && r == 0; i++) {
		uint64_t at =
			i ? link_number(LINK_LEAF, link_a(link), i, link_direction(link)) : link;
		double share = i ? 1.0 / n : 1;
		struct fabric_link l;

		fabric_link(f, at, &l);
		r = usage_maker_add(maker, at, l.bytes_per_ns,
				    c->is_load ? c->bytes_per_ns * fabric_link_efficiency(f, at) *
							 share
					       : lost_of(c, f, at),
				    c->connections, false);
	}
	return r;
}

/* The @i-th. */
static int tell(const struct link_change *c, uint32_t i, const struct fabric *f, struct overlap *o)
{
	CLEANUP(usage_maker_deinit) struct usage_maker maker = {0};
	const struct moment start = {0};
	struct usage *u = NULL;
	double from, until;
	int r = 0;

	when_window(&c->when, &start, &from, &until);
	for (size_t k = 0; k < c->n_links && r == 0; k++)
		r = add_usage(c, f, c->links[k], &maker);
	if (r == 0)
		r = usage_maker_end(&maker, &u);
	if (r == 0)
		r = overlap_condition(o, u, c->is_load ? RATE_LOAD : RATE_LOSS, from, until);
	if (r == 0 && c->when.every.is_given && !c->when.every.is_steps)
		overlap_repeat(o, i, c->when.every.x);
	usage_unref(u);
	return r;
}

int link_changes_tell(const struct link_change *list, size_t n, const struct fabric *f,
		      struct overlap *o)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = tell(&list[i], (uint32_t)i, f, o);
	return r;
}

int link_changes_step(const struct link_change *list, size_t n, const struct moment *at,
		      struct overlap *o)
{
	const struct moment before = {at->time_ns, at->step - 1, at->counted};
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct when *w = &list[i].when;
		bool held = when_holds(w, &before), holds = when_holds(w, at);
		double from, until;

		if (!when_has_steps(w) || held == holds)
			continue;
		when_window(w, holds ? at : &before, &from, &until);
		r = overlap_change(o, (uint32_t)i, at->time_ns, from,
				   holds ? until : fmin(until, at->time_ns));
	}
	return r;
}
