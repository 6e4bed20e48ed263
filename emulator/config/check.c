/* From texts to numbers, and what contradicts what; see config.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/value.h"
#include "schedule/schedule.h"

#define WORLD_MAX 65536
#define POLL_MAX_NS 1e9
#define WAIT_MAX_NS (86400.0 * 1e9)
#define WHERE_MAX 256

static const char *text_of(const struct config *c, enum config_id id)
{
	return c->values[id].n_items ? c->values[id].items[0].text : NULL;
}

/* "place: sentence". Return: -EINVAL. */
static int refuse(const struct config *c, enum config_id id, size_t item, struct err *err,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static int refuse(const struct config *c, enum config_id id, size_t item, struct err *err,
		  const char *fmt, ...)
{
	char where[WHERE_MAX], sentence[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(err, EINVAL, "%s: %s", config_where(c, id, item, where, sizeof(where)),
		       sentence);
}

/* What a place of the file does not say: which option stands there. */
static const char *name_in_file(const struct config *c, enum config_id id, char *buf, size_t size)
{
	bool is_file = c->values[id].source == SOURCE_FILE;

	snprintf(buf, size, "%s%s", is_file ? config_options[id].name : "", is_file ? ": " : "");
	return buf;
}

/* A parser of units/ has written its sentence: put the place in front. */
static int refuse_text(const struct config *c, enum config_id id, struct err *err)
{
	struct err why = {""};
	char name[64];

	if (err)
		why = *err;
	return refuse(c, id, 0, err, "%s%s", name_in_file(c, id, name, sizeof(name)), why.text);
}

static int take_count(const struct config *c, enum config_id id, uint64_t min, uint64_t max,
		      uint64_t *ret, struct err *err)
{
	uint64_t n;

	if (!text_of(c, id))
		return 0;
	if (units_count(text_of(c, id), &n, err) < 0)
		return refuse_text(c, id, err);
	if (n < min || n > max)
		return refuse(c, id, 0, err, "%s must be %llu to %llu, not %s",
			      config_options[id].name, (unsigned long long)min,
			      (unsigned long long)max, text_of(c, id));
	*ret = n;
	return 0;
}

static int take_time(const struct config *c, enum config_id id, double max_ns, double *ret,
		     struct err *err)
{
	double ns;

	if (!text_of(c, id))
		return 0;
	if (units_time(text_of(c, id), &ns, err) < 0)
		return refuse_text(c, id, err);
	if (ns > max_ns)
		return refuse(c, id, 0, err, "%s may be at most %.0fs, not %s",
			      config_options[id].name, max_ns / 1e9, text_of(c, id));
	*ret = ns;
	return 0;
}

static int take_choice(const struct config *c, enum config_id id, int *ret, struct err *err)
{
	const char *const *choices = config_options[id].choices, *text = text_of(c, id), *near;
	char list[128] = "";
	size_t n = 0, used = 0;

	for (; choices[n]; n++) {
		/* Log levels are NCCL's, which takes any case. */
		if (id == CONFIG_LOG ? strcasecmp(text, choices[n]) == 0
				     : strcmp(text, choices[n]) == 0) {
			*ret = (int)n;
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", n ? ", " : "",
					 choices[n]);
	}
	near = units_suggest_long(text, choices, n);
	if (near)
		return refuse(c, id, 0, err, "unknown %s '%.64s'; did you mean '%s'?",
			      config_options[id].name, text, near);
	return refuse(c, id, 0, err, "unknown %s '%.64s'; there are: %s", config_options[id].name,
		      text, list);
}

/* --- the cluster ---------------------------------------------------------- */

static int check_world(struct config *c, struct err *err)
{
	uint64_t nodes = 0, gpus = 0, world = 0;
	char where[WHERE_MAX];
	int r;

	if ((r = take_count(c, CONFIG_GPUS_PER_NODE, 1, WORLD_MAX, &gpus, err)) < 0 ||
	    (r = take_count(c, CONFIG_NODES, 1, WORLD_MAX, &nodes, err)) < 0 ||
	    (r = take_count(c, CONFIG_WORLD, 1, WORLD_MAX, &world, err)) < 0)
		return r;
	if (world && !config_is_set(c, CONFIG_NODES)) {
		if (world % gpus)
			return refuse(c, CONFIG_WORLD, 0, err,
				      "a world of %llu is no multiple of %llu gpus per node (%s)",
				      (unsigned long long)world, (unsigned long long)gpus,
				      config_where(c, CONFIG_GPUS_PER_NODE, 0, where, sizeof(where)));
		nodes = world / gpus;
	}
	if (world && world != nodes * gpus)
		return refuse(c, CONFIG_WORLD, 0, err,
			      "a world of %llu contradicts %llu nodes x %llu gpus per node = %llu (%s)",
			      (unsigned long long)world, (unsigned long long)nodes,
			      (unsigned long long)gpus, (unsigned long long)(nodes * gpus),
			      config_where(c, CONFIG_NODES, 0, where, sizeof(where)));
	if (nodes * gpus > WORLD_MAX)
		return refuse(c, config_is_set(c, CONFIG_NODES) ? CONFIG_NODES : CONFIG_GPUS_PER_NODE,
			      0, err, "%llu nodes x %llu gpus per node are more than %d ranks",
			      (unsigned long long)nodes, (unsigned long long)gpus, WORLD_MAX);
	topology_default(&c->topology);
	c->topology.n_nodes = (uint32_t)nodes;
	c->topology.gpus_per_node = (uint32_t)gpus;
	c->world = (uint32_t)(nodes * gpus);
	return 0;
}

static int check_as_node(struct config *c, struct err *err)
{
	const char *text = text_of(c, CONFIG_AS_NODE), *near;
	static const char *const names[] = {"first", "last"};
	uint32_t nodes = c->topology.n_nodes;
	char where[WHERE_MAX];
	uint64_t k = 0;

	c->as_node = 0;
	if (config_is_set(c, CONFIG_AS_NODE) && config_is_set(c, CONFIG_REAL))
		return refuse(c, CONFIG_AS_NODE, 0, err, "as-node says which ranks are real, and so does "
			      "%s: give one of them", config_where(c, CONFIG_REAL, 0, where, sizeof(where)));
	if (strcmp(text, "first") == 0)
		return 0;
	if (strcmp(text, "last") == 0) {
		c->as_node = nodes - 1;
		return 0;
	}
	if (units_count(text, &k, NULL) < 0) {
		near = units_suggest(text, names, ARRAY_SIZE(names));
		return refuse(c, CONFIG_AS_NODE, 0, err, "'%.32s' is no node: first, last, or a number "
			      "from 0%s%s%s", text, near ? "; did you mean '" : "", near ? near : "",
			      near ? "'?" : "");
	}
	if (k >= nodes)
		return refuse(c, CONFIG_AS_NODE, 0, err, "there is no node %llu among %u nodes: they are "
			      "counted from 0", (unsigned long long)k, nodes);
	c->as_node = (uint32_t)k;
	return 0;
}

static int check_real(struct config *c, struct err *err)
{
	char where[WHERE_MAX];
	int r = check_as_node(c, err);

	if (r < 0)
		return r;
	free(c->real);
	c->real = NULL;
	if (!text_of(c, CONFIG_REAL)) {
		c->n_real = c->topology.gpus_per_node;
		c->real = calloc(c->n_real, sizeof(*c->real));
		if (!c->real)
			return err_set(err, ENOMEM, "out of memory");
		for (size_t i = 0; i < c->n_real; i++)
			c->real[i] = c->as_node * c->topology.gpus_per_node + (uint32_t)i;
		return 0;
	}
	r = units_ranks(text_of(c, CONFIG_REAL), c->world, &c->real, &c->n_real, err);
	if (r == -ERANGE)
		return refuse(c, CONFIG_REAL, 0, err,
			      "real ranks '%.64s' are outside the world of %u (%u nodes x %u, %s)",
			      text_of(c, CONFIG_REAL), c->world, c->topology.n_nodes,
			      c->topology.gpus_per_node,
			      config_where(c, CONFIG_NODES, 0, where, sizeof(where)));
	return r < 0 ? refuse_text(c, CONFIG_REAL, err) : 0;
}

static int check_layouts(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_LAYOUT];
	struct err why = {""};
	char name[64];

	c->n_layouts = 0;
	if (v->n_items > CONFIG_LAYOUTS_MAX)
		return refuse(c, CONFIG_LAYOUT, CONFIG_LAYOUTS_MAX, err,
			      "more than %d layouts; give the dense and the expert one",
			      CONFIG_LAYOUTS_MAX);
	for (size_t i = 0; i < v->n_items; i++) {
		if (layout_parse(v->items[i].text, c->world, &c->layouts[i], &why) < 0)
			return refuse(c, CONFIG_LAYOUT, i, err, "%s%s",
				      name_in_file(c, CONFIG_LAYOUT, name, sizeof(name)), why.text);
		c->n_layouts++;
	}
	return 0;
}

static int check_data_for(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_DATA_FOR];
	struct err why;

	free(c->data_for);
	c->n_data_for = 0;
	c->data_for = calloc(v->n_items + 1, sizeof(*c->data_for));
	if (!c->data_for)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < v->n_items; i++) {
		struct data_for *f = &c->data_for[c->n_data_for];

		if (data_for_parse(v->items[i].text, c->layouts, c->n_layouts, f, &why))
			return refuse(c, CONFIG_DATA_FOR, i, err, "%s", why.text);
		for (size_t j = 0; j < c->n_data_for; j++)
			if (c->data_for[j].kind == f->kind &&
			    !strcmp(c->data_for[j].axes, f->axes))
				return refuse(c, CONFIG_DATA_FOR, i, err,
					      "a second policy for the same; there was '%s' before",
					      v->items[j].text);
		c->n_data_for++;
	}
	return 0;
}

static int check_hop(struct config *c, enum config_id latency, enum config_id bandwidth,
		     struct hop_cost *hop, struct err *err)
{
	int r = take_time(c, latency, WAIT_MAX_NS, &hop->latency_ns, err);

	if (r < 0 || !text_of(c, bandwidth))
		return r;
	if (units_bandwidth(text_of(c, bandwidth), &hop->bytes_per_ns, err) < 0)
		return refuse_text(c, bandwidth, err);
	if (!(hop->bytes_per_ns > 0))
		return refuse(c, bandwidth, 0, err, "%s must be above zero",
			      config_options[bandwidth].name);
	return 0;
}

/* --- schedules ------------------------------------------------------------ */

static int check_algo(struct config *c, size_t item, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_ALGO];
	const char *text = v->items[item].text, *eq = strchr(text, '=');
	const char *names[COLL_KINDS + SCHED_ALGOS];
	char name[32], near[96];
	int kind, algo, r;

	for (int i = 0; i < COLL_KINDS; i++)
		names[i] = coll_kind_name((uint32_t)i);
	for (int i = 0; i < SCHED_ALGOS; i++)
		names[COLL_KINDS + i] = sched_algo_name((uint32_t)i);
	if (!eq)
		return refuse(c, CONFIG_ALGO, item, err,
			      "'%.64s' is no KIND=ALGO, such as allreduce=tree", text);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
	kind = coll_kind_parse(name);
	if (kind < 0) {
		value_suggestion(name, names, COLL_KINDS, near, sizeof(near));
		return refuse(c, CONFIG_ALGO, item, err, "unknown collective '%s'%s", name,
			      near[0] ? near : "; there are allreduce, allgather, ...");
	}
	algo = sched_algo_parse(eq + 1);
	if (algo < 0) {
		value_suggestion(eq + 1, names + COLL_KINDS, SCHED_ALGOS, near, sizeof(near));
		return refuse(c, CONFIG_ALGO, item, err, "unknown algorithm '%.32s'%s", eq + 1,
			      near[0] ? near : "; there are ring, tree, direct, chain");
	}
	if (kind != COLL_SENDRECV) {
		struct sched s = {.kind = (enum coll_kind)kind, .algo = (enum sched_algo)algo,
				  .n_ranks = 2, .ranks_per_node = 1, .n_channels = 1,
				  .elem_bytes = 4, .bytes = 1024};
		struct err why = {""};

		r = sched_init(&s, &why);
		if (r < 0)
			return refuse(c, CONFIG_ALGO, item, err, "%s", why.text);
	} else if (algo != SCHED_DIRECT) {
		return refuse(c, CONFIG_ALGO, item, err, "SendRecv is always direct");
	}
	for (size_t i = 0; i < item; i++) {
		size_t len = strcspn(v->items[i].text, "=");

		snprintf(name, sizeof(name), "%.*s", (int)len, v->items[i].text);
		if (coll_kind_parse(name) == kind)
			return refuse(c, CONFIG_ALGO, item, err,
				      "a second algorithm for %s; there was '%s' before",
				      coll_kind_name((uint32_t)kind), v->items[i].text);
	}
	c->algo[kind] = (uint8_t)algo;
	return 0;
}

static int check_schedule(struct config *c, struct err *err)
{
	uint64_t channels = 0;
	int r;

	for (int k = 0; k < COLL_KINDS; k++)
		c->algo[k] = (uint8_t)sched_default_algo((enum coll_kind)k);
	for (size_t i = 0; i < c->values[CONFIG_ALGO].n_items; i++)
		if ((r = check_algo(c, i, err)) < 0)
			return r;
	r = take_count(c, CONFIG_CHANNELS, 1, SCHED_MAX_CHANNELS, &channels, err);
	if (r < 0)
		return r;
	c->channels = (uint32_t)channels;
	if (units_bytes(text_of(c, CONFIG_CHUNK), &c->chunk_bytes, err) < 0)
		return refuse_text(c, CONFIG_CHUNK, err);
	/* 16: the largest element (8 bytes) twice, so that a step is never empty */
	if (c->chunk_bytes < 16 || c->chunk_bytes > (UINT64_C(1) << 30))
		return refuse(c, CONFIG_CHUNK, 0, err, "chunk must be 16B to 1GiB, not %s",
			      text_of(c, CONFIG_CHUNK));
	return 0;
}

/* --- the link ------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
	struct in_addr a;

	/* 127.example.org is a name, and may be anywhere */
	return strcmp(host, "localhost") == 0 || (strncmp(host, "127.", 4) == 0 && inet_pton(AF_INET, host, &a) == 1) ||
	       strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0;
}

/* tcp and rdma. */
static int check_host(const struct config *c, size_t item, const char *addr, struct err *err)
{
	const char *rest = strchr(addr, ':') + 1, *colon = strrchr(rest, ':');
	char host[256];
	uint64_t port;

	if (!colon || colon == rest)
		return refuse(c, CONFIG_ADDR, item, err, "'%.128s' is no %.*s:host:port", addr,
			      (int)strcspn(addr, ":"), addr);
	if (units_count(colon + 1, &port, NULL) < 0 || port > 65535)
		return refuse(c, CONFIG_ADDR, item, err, "'%.32s' is no port (0 to 65535; 0: any)",
			      colon + 1);
	if ((size_t)(colon - rest) >= sizeof(host))
		return refuse(c, CONFIG_ADDR, item, err, "the host name is too long");
	snprintf(host, sizeof(host), "%.*s", (int)(colon - rest), rest);
	if (!is_loopback(host) && !text_of(c, CONFIG_TOKEN) && strncmp(addr, "rdma:auto:", 10) != 0)
		return refuse(c, CONFIG_ADDR, item, err,
			      "%s can be reached from other hosts, that needs a token: "
			      "set NBOX_TOKEN for nboxd and the workers%s",
			      addr, addr[0] == 't' ? ", or use tcp:127.0.0.1:port" : "");
	return 0;
}

static int check_shm(const struct config *c, size_t item, const char *addr, struct err *err)
{
	if (addr[3] != ':' || (addr[4] != '/' && (addr[4] != '@' || !addr[5])))
		return refuse(c, CONFIG_ADDR, item, err,
			      "'%.128s': the path must begin with / (or be an abstract @name)", addr);
	if (strlen(addr + 4) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return refuse(c, CONFIG_ADDR, item, err,
			      "the path of a socket has at most %zu bytes, this one %zu",
			      sizeof(((struct sockaddr_un *)0)->sun_path) - 1, strlen(addr + 4));
	return 0;
}

static const char *const schemes[] = {"shm", "tcp", "rdma"}; /* as in link_names */

static int check_addr(const struct config *c, size_t item, int *ret_link, struct err *err)
{
	const char *addr = c->values[CONFIG_ADDR].items[item].text, *near;
	char scheme[16];
	size_t i;

	snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(addr, ":"), addr);
	for (i = 0; i < ARRAY_SIZE(schemes) && strcmp(scheme, schemes[i]) != 0; i++)
		;
	if (i == ARRAY_SIZE(schemes) || !strchr(addr, ':')) {
		near = units_suggest(scheme, schemes, ARRAY_SIZE(schemes));
		return refuse(c, CONFIG_ADDR, item, err,
			      "'%.128s' is no address: shm:/path, tcp:host:port or rdma:host:port%s%s%s",
			      addr, near ? "; did you mean '" : "", near ? near : "", near ? ":'?" : "");
	}
	*ret_link = (int)i;
	return i ? check_host(c, item, addr, err) : check_shm(c, item, addr, err);
}

static int default_addr(struct config *c, int link)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char **at = &c->default_addr;

	if (link)
		return (*at = strdup(link == 1 ? "tcp:127.0.0.1:0" : "rdma:auto:0")) ? 0 : -ENOMEM;
	if (dir && dir[0] == '/' && strlen(dir) < 64 && access(dir, W_OK) == 0)
		return asprintf(at, "shm:%s/nboxd.sock", dir) < 0 ? -ENOMEM : 0;
	return asprintf(at, "shm:/tmp/nboxd-%u.sock", (unsigned)getuid()) < 0 ? -ENOMEM : 0;
}

/* The addresses that were given, each of which names its link; workers use the first one, or
 * the first of --link. */
static int check_addrs(struct config *c, int link, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_ADDR];
	char where[WHERE_MAX];
	int kind = 0, r;

	for (size_t i = 0; i < v->n_items; i++) {
		r = check_addr(c, i, &kind, err);
		if (r < 0)
			return r;
		c->addrs[i] = v->items[i].text;
		if (!c->addr && (!config_is_set(c, CONFIG_LINK) || kind == link))
			c->addr = c->addrs[i];
		if (c->addr == c->addrs[i]) { /* it comes first */
			c->addrs[i] = c->addrs[0];
			c->addrs[0] = c->addr;
		}
	}
	c->n_addrs = v->n_items;
	if (!c->addr)
		return refuse(c, CONFIG_ADDR, 0, err, "%s contradicts link %s (%s); an address alone says "
			      "which link it is", c->addrs[0], schemes[link],
			      config_where(c, CONFIG_LINK, 0, where, sizeof(where)));
	return 0;
}

static int check_link(struct config *c, struct err *err)
{
	const char *token = text_of(c, CONFIG_TOKEN);
	int link = 0, r = take_choice(c, CONFIG_LINK, &link, err);

	if (r < 0)
		return r;
	free(c->addrs);
	free(c->default_addr);
	c->default_addr = NULL;
	c->addr = NULL;
	c->n_addrs = 0;
	c->addrs = calloc(c->values[CONFIG_ADDR].n_items + 1, sizeof(*c->addrs));
	memset(c->token, 0, sizeof(c->token));
	if (token) {
		if (strlen(token) > sizeof(c->token) || !token[0])
			return refuse(c, CONFIG_TOKEN, 0, err, "a token has 1 to %d bytes, not %zu",
				      WIRE_TOKEN_BYTES, strlen(token));
		memcpy(c->token, token, strlen(token));
	}
	if (c->addrs && c->values[CONFIG_ADDR].n_items)
		return check_addrs(c, link, err);
	if (!c->addrs || default_addr(c, link) < 0)
		return err_set(err, ENOMEM, "out of memory");
	c->addr = c->addrs[0] = c->default_addr;
	c->n_addrs = 1;
	return 0;
}

static int check_payload_memory(struct config *c, struct err *err)
{
	if (c->payload_memory != MEMORY_DEVICE || strncmp(c->addr, "rdma:", 5) == 0)
		return 0;
	return refuse(c, CONFIG_PAYLOAD_MEMORY, 0, err,
		      "payload-memory device needs link rdma (workers use %s)", c->addr);
}

static int check_store(struct config *c, struct err *err)
{
	const char *text = text_of(c, CONFIG_STORE), *colon = strrchr(text, ':');
	uint64_t port;

	c->store = NULL;
	if (strcmp(text, "none") == 0)
		return 0;
	if (!colon || colon == text || colon - text > 255)
		return refuse(c, CONFIG_STORE, 0, err,
			      "'%.128s' is no HOST:PORT, such as 127.0.0.1:0, nor none", text);
	if (units_count(colon + 1, &port, NULL) < 0 || port > 65535)
		return refuse(c, CONFIG_STORE, 0, err, "'%.32s' is no port (0 to 65535; 0: any)",
			      colon + 1);
	c->store = text;
	return 0;
}

/* --- the rest ------------------------------------------------------------- */

static int check_model(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_WHAT_IF];

	c->model = text_of(c, CONFIG_MODEL);
	if (!c->model[0])
		return refuse(c, CONFIG_MODEL, 0, err, "no model is named; `nbox models` lists them");
	free(c->what_ifs);
	free(c->failures);
	c->n_what_ifs = c->n_failures = 0;
	c->what_ifs = calloc(v->n_items + 1, sizeof(*c->what_ifs));
	c->failures = calloc(v->n_items + 1, sizeof(*c->failures));
	if (!c->what_ifs || !c->failures)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < v->n_items; i++) {
		const char *text = v->items[i].text;
		struct err why;

		if (!text[0])
			return refuse(c, CONFIG_WHAT_IF, i, err, "an empty what-if");
		if (!failure_is_one(text))
			c->what_ifs[c->n_what_ifs++] = text;
		else if (failure_parse(text, c->world, &c->failures[c->n_failures], &why))
			return refuse(c, CONFIG_WHAT_IF, i, err, "%s", why.text);
		else
			c->n_failures++;
	}
	return 0;
}

static int check_choices(struct config *c, struct err *err)
{
	int exchange = 0, data = 0, split = 0, work = 0, memory = 0, level = 0, r;
	char where[WHERE_MAX];

	if ((r = take_choice(c, CONFIG_EXCHANGE, &exchange, err)) < 0 ||
	    (r = take_choice(c, CONFIG_DATA, &data, err)) < 0 ||
	    (r = take_choice(c, CONFIG_SPLIT, &split, err)) < 0 ||
	    (r = take_choice(c, CONFIG_PAYLOAD_WORK, &work, err)) < 0 ||
	    (r = take_choice(c, CONFIG_PAYLOAD_MEMORY, &memory, err)) < 0 ||
	    (r = take_choice(c, CONFIG_LOG, &level, err)) < 0)
		return r;
	c->exchange = (uint32_t)exchange;
	c->data = (uint32_t)data;
	c->split = (enum split_policy)split;
	c->payload_work = (enum config_payload_work)work;
	c->payload_memory = (enum config_payload_memory)memory;
	c->log_level = level;
	for (int i = CONFIG_PAYLOAD_WORK; i <= CONFIG_PAYLOAD_MEMORY; i++)
		if (config_is_set(c, i) && c->exchange != EXCHANGE_PAYLOAD)
			return refuse(c, i, 0, err,
				      "%s means nothing without exchange payload (it is %s, %s)",
				      config_options[i].name, wire_exchange_name(c->exchange),
				      config_where(c, CONFIG_EXCHANGE, 0, where, sizeof(where)));
	return 0;
}

static int check_times(struct config *c, struct err *err)
{
	double poll = 0, settle = 0, timeout = 0;
	uint64_t seed = 0;
	int r;

	if ((r = take_time(c, CONFIG_POLL, POLL_MAX_NS, &poll, err)) < 0 ||
	    (r = take_time(c, CONFIG_SETTLE, WAIT_MAX_NS, &settle, err)) < 0 ||
	    (r = take_time(c, CONFIG_TIMEOUT, WAIT_MAX_NS, &timeout, err)) < 0 ||
	    (r = take_count(c, CONFIG_SEED, 0, UINT64_MAX, &seed, err)) < 0)
		return r;
	if (timeout < 1e9)
		return refuse(c, CONFIG_TIMEOUT, 0, err, "timeout must be at least 1s, not %s",
			      text_of(c, CONFIG_TIMEOUT));
	if (settle > timeout)
		return refuse(c, CONFIG_SETTLE, 0, err, "settle must not be longer than timeout");
	c->poll_ns = (uint64_t)poll;
	c->settle_ns = (uint64_t)settle;
	c->timeout_ns = (uint64_t)timeout;
	c->seed = seed;
	c->out = text_of(c, CONFIG_OUT);
	if (c->out && !c->out[0])
		return refuse(c, CONFIG_OUT, 0, err, "no directory is named");
	return 0;
}

int config_finish(struct config *c, struct err *err)
{
	int r;

	if ((r = check_world(c, err)) < 0 || (r = check_real(c, err)) < 0 ||
	    (r = check_layouts(c, err)) < 0 ||
	    (r = check_data_for(c, err)) < 0 ||
	    (r = check_hop(c, CONFIG_INTRA_LATENCY, CONFIG_INTRA_BANDWIDTH, &c->topology.intra,
			   err)) < 0 ||
	    (r = check_hop(c, CONFIG_INTER_LATENCY, CONFIG_INTER_BANDWIDTH, &c->topology.inter,
			   err)) < 0 ||
	    (r = check_model(c, err)) < 0 || (r = check_choices(c, err)) < 0 ||
	    (r = check_schedule(c, err)) < 0 || (r = check_link(c, err)) < 0 ||
	    (r = check_payload_memory(c, err)) < 0 || (r = check_store(c, err)) < 0 ||
	    (r = check_times(c, err)) < 0)
		return r;
	return 0;
}
