/* See decisions.h. One line is read at a time; a head in brackets ends what stands above it. */
#include "decisions.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COMMS_MAX 4096
#define POINTS_MAX 4096
#define ORDERS_MAX 128 /* two of each of NCCL's channels */
#define RANKS_MAX (1 << 24)
#define LOCAL_MAX 1024 /* ranks of a node */
#define CHANNELS_MAX 64
#define BYTES_MOST (UINT64_C(1) << 50)
#define US_MOST 1e12
#define GBS_MOST 1e6

struct reader {
	const char *file;
	const char *p, *end;
	unsigned long line;
	struct decisions *to;
	struct decisions_comm *comm; /* the one under way; NULL: the head */
	struct decisions_op *op;     /* of it; NULL: none yet */
	unsigned int seen;           /* bits of what the head or the communicator had */
	char *sentence;
};

static int wrong(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct reader *r, const char *fmt, ...)
{
	char what[DECISIONS_SENTENCE - 140];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(r->sentence, DECISIONS_SENTENCE, "%.100s:%lu: %s", r->file, r->line, what);
	return -1;
}

/* Room for one more of @size bytes in *items of @n; it doubles. */
static int grow(struct reader *r, void **items, size_t n, size_t size)
{
	void *more;

	if ((n & (n - 1)) != 0) /* it is full at 0, 1, 2, 4, ... */
		return 0;
	more = realloc(*items, (n ? 2 * n : 1) * size);
	if (!more)
		return wrong(r, "out of memory");
	*items = more;
	return 0;
}

/* --- words and numbers ---------------------------------------------------------------- */

/* The next word of *text, which is moved behind it; "": there is none. */
static char *next_word(char **text)
{
	char *word = *text + strspn(*text, " ");

	*text = word + strcspn(word, " ");
	if (**text)
		*(*text)++ = '\0';
	return word;
}

static int take_choice(struct reader *r, const char *key, const char *word, const char *words,
		       uint32_t *ret)
{
	int i = words_find(words, word, strlen(word));

	if (i < 0)
		return wrong(r, "%s: '%.60s' is none of %s", key, word, words);
	*ret = (uint32_t)i;
	return 0;
}

static int take_count(struct reader *r, const char *key, const char *word, uint64_t least,
		      uint64_t most, uint64_t *ret)
{
	size_t n = strlen(word);
	uint64_t v;

	errno = 0;
	v = n && strspn(word, "0123456789") == n ? strtoull(word, NULL, 10) : 0;
	if (!n || strspn(word, "0123456789") != n || errno || v < least || v > most)
		return wrong(r, "%s: '%.60s' is no whole number from %llu to %llu", key, word,
			     (unsigned long long)least, (unsigned long long)most);
	*ret = v;
	return 0;
}

/* A number of channels, or "-". */
static int take_channels(struct reader *r, const char *key, const char *word, uint64_t least,
			 int32_t *ret)
{
	uint64_t v = 0;

	if (strcmp(word, "-") == 0) {
		*ret = DECISIONS_NOT_KNOWN;
		return 0;
	}
	if (take_count(r, key, word, least, CHANNELS_MAX, &v) < 0)
		return -1;
	*ret = (int32_t)v;
	return 0;
}

static int take_float(struct reader *r, const char *key, const char *word, double most, float *ret)
{
	size_t n = strlen(word);
	char *end;
	double v = strtod(word, &end);

	if (!n || *end || strspn(word, "0123456789.e+-") != n || !(v >= 0 && v <= most))
		return wrong(r, "%s: '%.60s' is no number from 0 to %g", key, word, most);
	*ret = (float)v;
	return 0;
}

static int take_text(struct reader *r, const char *key, const char *value, char *ret, size_t size)
{
	if (strlen(value) >= size)
		return wrong(r, "%s: longer than %zu letters", key, size - 1);
	strcpy(ret, value);
	return 0;
}

/* --- the head --------------------------------------------------------------------------- */

enum { HEAD_FORMAT, HEAD_NCCL, HEAD_DATE, HEAD_GPUS, HEAD_MADE, HEAD_KEYS };
#define HEAD_NAMES "format|nccl|date|gpus|made"

static int take_head(struct reader *r, uint32_t key, const char *value)
{
	struct decisions *d = r->to;
	uint64_t format = 0;

	switch (key) {
	case HEAD_FORMAT:
		if (take_count(r, "format", value, 0, UINT32_MAX, &format) < 0)
			return -1;
		return format == DECISIONS_FORMAT
			       ? 0
			       : wrong(r,
				       "format %llu; this nbox reads %d: write the file again with "
				       "its nbox oracle",
				       (unsigned long long)format, DECISIONS_FORMAT);
	case HEAD_NCCL:
		if (strspn(value, "0123456789.") != strlen(value) || !tables_find(value))
			return wrong(r, "nccl: '%.60s'; NCCL's versions are written as 2.28.9",
				     value);
		return take_text(r, "nccl", value, d->nccl, sizeof(d->nccl));
	case HEAD_DATE:
		return take_text(r, "date", value, d->date, sizeof(d->date));
	case HEAD_GPUS:
		return take_text(r, "gpus", value, d->gpus, sizeof(d->gpus));
	default:
		return take_text(r, "made", value, d->made, sizeof(d->made));
	}
}

/* --- a communicator ----------------------------------------------------------------------- */

enum { COMM_RANKS, COMM_NODES, COMM_CHANNELS, COMM_NVLS, COMM_P2P, COMM_PEER, COMM_KEYS };
#define COMM_NAMES "ranks|nodes|channels|nvls_channels|p2p_channels|p2p_channels_per_peer"

static int take_comm(struct reader *r, uint32_t key, const char *name, const char *value)
{
	struct decisions_comm *c = r->comm;
	int32_t *const channels[] = {
		[COMM_CHANNELS] = &c->n_channels,
		[COMM_NVLS] = &c->n_nvls_channels,
		[COMM_P2P] = &c->n_p2p_channels,
		[COMM_PEER] = &c->n_p2p_channels_per_peer,
	};
	uint64_t v = 0;

	if (key != COMM_RANKS && key != COMM_NODES)
		return take_channels(r, name, value, key != COMM_NVLS, channels[key]);
	if (take_count(r, name, value, key == COMM_RANKS ? 2 : 1, RANKS_MAX, &v) < 0)
		return -1;
	if (key == COMM_RANKS)
		c->n_ranks = (uint32_t)v;
	else
		c->n_nodes = (uint32_t)v;
	return 0;
}

/* What a line may stand below: ranks and nodes are there. */
static int need_shape(struct reader *r, const char *what)
{
	if ((r->seen & (1u << COMM_RANKS)) && (r->seen & (1u << COMM_NODES)))
		return 0;
	return wrong(r, "%s stands in front of the communicator's ranks and nodes", what);
}

enum {
	GRAPH_CHANNELS,
	GRAPH_BW_INTRA,
	GRAPH_BW_INTER,
	GRAPH_TYPE_INTRA,
	GRAPH_TYPE_INTER,
	GRAPH_PATTERN,
	GRAPH_CROSS,
	GRAPH_SAME,
	GRAPH_KEYS
};
#define GRAPH_NAMES \
	"channels|bw_intra|bw_inter|type_intra|type_inter|pattern|cross_nic|same_channels"

static int take_graph_value(struct reader *r, uint32_t key, const char *name, const char *value,
			    struct decisions_graph *g)
{
	uint64_t v = 0;
	int failed = 0;

	switch (key) {
	case GRAPH_BW_INTRA:
		return take_float(r, name, value, GBS_MOST, &g->bw_intra);
	case GRAPH_BW_INTER:
		return take_float(r, name, value, GBS_MOST, &g->bw_inter);
	case GRAPH_TYPE_INTRA:
		return take_choice(r, name, value, DECISIONS_PATHS, &g->type_intra);
	case GRAPH_TYPE_INTER:
		return take_choice(r, name, value, DECISIONS_PATHS, &g->type_inter);
	case GRAPH_PATTERN:
		return take_choice(r, name, value, DECISIONS_PATTERNS, &g->pattern);
	case GRAPH_CHANNELS:
		failed = take_count(r, name, value, 1, CHANNELS_MAX, &v);
		g->n_channels = (uint32_t)v;
		return failed;
	case GRAPH_CROSS:
		failed = take_count(r, name, value, 0, 2, &v);
		g->cross_nic = (uint32_t)v;
		return failed;
	default:
		failed = take_count(r, name, value, 0, 1, &v);
		g->same_channels = (uint32_t)v;
		return failed;
	}
}

/* "channels 8 bw_intra 45 ..." */
static int take_graph(struct reader *r, const char *name, char *value)
{
	struct decisions_graph g = {0}, *to;
	unsigned int seen = 0;
	uint32_t graph = 0, key = 0;

	if (take_choice(r, "graph", name, DECISIONS_GRAPHS, &graph) < 0)
		return -1;
	to = &r->comm->graphs[graph];
	if (to->n_channels)
		return wrong(r, "graph %s stands there twice", name);
	while (*value) {
		char *word = next_word(&value), *number = next_word(&value);

		if (take_choice(r, "graph", word, GRAPH_NAMES, &key) < 0 ||
		    take_graph_value(r, key, word, number, &g) < 0)
			return -1;
		if (seen & (1u << key))
			return wrong(r, "%s stands there twice", word);
		seen |= 1u << key;
	}
	if (seen != (1u << GRAPH_KEYS) - 1)
		return wrong(r, "graph %s must have each of " GRAPH_NAMES, name);
	*to = g;
	return 0;
}

static int take_order_ranks(struct reader *r, char *value, struct decisions_order *o)
{
	uint32_t local = r->comm->n_ranks / r->comm->n_nodes;
	uint8_t has[LOCAL_MAX] = {0};

	while (*value) {
		uint64_t rank = 0;

		if (take_count(r, "order", next_word(&value), 0, local - 1, &rank) < 0)
			return -1;
		if (has[rank]++)
			return wrong(r, "order: rank %u stands there twice", (unsigned int)rank);
		o->ranks[o->n++] = (uint16_t)rank;
	}
	return o->n == local ? 0
			     : wrong(r, "order: %u ranks, a node of this communicator has %u", o->n,
				     local);
}

/* "ring 0", "0 7 6 5 4 3 2 1" */
static int take_order(struct reader *r, char *name, char *value)
{
	struct decisions_comm *c = r->comm;
	struct decisions_order *o;
	uint64_t channel = 0;
	uint32_t graph = 0;

	if (need_shape(r, "an order") < 0 ||
	    take_choice(r, "order", next_word(&name), "tree|ring", &graph) < 0 ||
	    take_count(r, "order", next_word(&name), 0, CHANNELS_MAX - 1, &channel) < 0)
		return -1;
	for (size_t i = 0; i < c->n_orders; i++)
		if (c->orders[i].graph == graph && c->orders[i].channel == channel)
			return wrong(r, "channel %u has its order twice", (unsigned int)channel);
	if (c->n_orders == ORDERS_MAX)
		return wrong(r, "more than %d orders", ORDERS_MAX);
	if (grow(r, (void **)&c->orders, c->n_orders, sizeof(*o)) < 0)
		return -1;
	o = &c->orders[c->n_orders];
	*o = (struct decisions_order){.graph = graph, .channel = (uint32_t)channel};
	o->ranks = malloc((c->n_ranks / c->n_nodes) * sizeof(o->ranks[0]));
	if (!o->ranks)
		return wrong(r, "out of memory");
	c->n_orders++;
	return take_order_ranks(r, value, o);
}

/* --- costs ----------------------------------------------------------------------------- */

static const char *word_at(const char *words, uint32_t i, int *ret_len)
{
	for (; i; i--)
		words += strcspn(words, "|") + 1;
	*ret_len = (int)strcspn(words, "|");
	return words;
}

/* "nvlstree/simple" */
static int take_pair(struct reader *r, char *word, uint32_t *ret_algo, uint32_t *ret_proto)
{
	char *slash = strchr(word, '/');

	if (!slash)
		return wrong(r, "'%.60s' is no algorithm/protocol, as in ring/ll128", word);
	*slash = '\0';
	return take_choice(r, "the algorithm", word, ALGO_WORDS, ret_algo) < 0 ||
			       take_choice(r, "the protocol", slash + 1, PROTO_WORDS, ret_proto) < 0
		       ? -1
		       : 0;
}

/* NCCL takes the first of the cheapest in the order of enum algo and enum nbox_proto. */
static int check_taken(struct reader *r, const struct decisions_point *p)
{
	float us = p->us[p->algo][p->proto];

	if (us < 0)
		return wrong(r, "what NCCL takes is not among what has a cost behind 'of'");
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t q = 0; q < N_PROTOS; q++) {
			int is_before = a < p->algo || (a == p->algo && q < p->proto), n, m;
			const char *algo = word_at(ALGO_WORDS, a, &n);
			const char *proto = word_at(PROTO_WORDS, q, &m);

			if (p->us[a][q] >= 0 &&
			    (p->us[a][q] < us || (is_before && p->us[a][q] == us)))
				return wrong(r,
					     "NCCL would take %.*s/%.*s, of %g us, before what "
					     "stands here: the line was changed by hand, or NCCL "
					     "was under another tuner",
					     n, algo, m, proto, (double)p->us[a][q]);
		}
	return 0;
}

static int take_costs(struct reader *r, char *value, struct decisions_point *p)
{
	while (*value) {
		char *word = next_word(&value), *cost = next_word(&value);
		uint32_t a = 0, q = 0;

		if (take_pair(r, word, &a, &q) < 0)
			return -1;
		if (p->us[a][q] >= 0)
			return wrong(r, "%s/%s has two costs", word, word + strlen(word) + 1);
		if (take_float(r, "a cost", cost, US_MOST, &p->us[a][q]) < 0)
			return -1;
	}
	return check_taken(r, p);
}

/* "1048576", "tree/ll128 16 of tree/ll 317.09 ..." */
static int take_point(struct reader *r, const char *bytes, char *value)
{
	struct decisions_op *op = r->op;
	struct decisions_point p = {0};

	if (!op)
		return wrong(r, "'at' stands in front of the first [cost KIND]");
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t q = 0; q < N_PROTOS; q++)
			p.us[a][q] = -1;
	if (take_count(r, "at", bytes, 1, BYTES_MOST, &p.bytes) < 0)
		return -1;
	if (op->n && op->points[op->n - 1].bytes >= p.bytes)
		return wrong(r, "%llu bytes after %llu: sizes must rise, each once",
			     (unsigned long long)p.bytes,
			     (unsigned long long)op->points[op->n - 1].bytes);
	if (op->n == POINTS_MAX)
		return wrong(r, "more than %d sizes", POINTS_MAX);
	if (take_pair(r, next_word(&value), &p.algo, &p.proto) < 0 ||
	    take_channels(r, "channels", next_word(&value), 1, &p.n_channels) < 0)
		return -1;
	if (strcmp(next_word(&value), "of") != 0)
		return wrong(r, "at: 'of' and the costs come behind the channels (or -)");
	if (take_costs(r, value, &p) < 0 || grow(r, (void **)&op->points, op->n, sizeof(p)) < 0)
		return -1;
	op->points[op->n++] = p;
	return 0;
}

/* --- heads in brackets ---------------------------------------------------------------------- */

static int check_missing(struct reader *r, const char *names, uint32_t n_keys, const char *what)
{
	for (uint32_t key = 0; key < n_keys; key++) {
		int len;
		const char *name = word_at(names, key, &len);

		if (!(r->seen & (1u << key)))
			return wrong(r, "%s above has no %.*s", what, len, name);
	}
	return 0;
}

static int end_op(struct reader *r)
{
	int has_two = !r->op || r->op->n >= 2;

	r->op = NULL;
	return has_two ? 0
		       : wrong(r, "the [cost] above has fewer than two sizes, and nothing can be "
				  "said between them: ask for more sizes");
}

static int end_comm(struct reader *r)
{
	const struct decisions_comm *c = r->comm;

	if (!c)
		return check_missing(r, HEAD_NAMES, HEAD_KEYS, "the head");
	if (end_op(r) < 0 || check_missing(r, COMM_NAMES, COMM_KEYS, "the [comm]") < 0)
		return -1;
	for (const struct decisions_comm *o = r->to->comms; o < c; o++)
		if (o->n_ranks == c->n_ranks && o->n_nodes == c->n_nodes)
			return wrong(r, "there are two [comm] of %u ranks on %u nodes: keep one",
				     c->n_ranks, c->n_nodes);
	return 0;
}

static int begin_comm(struct reader *r)
{
	struct decisions *d = r->to;

	if (end_comm(r) < 0)
		return -1;
	if (d->n == COMMS_MAX)
		return wrong(r, "more than %d communicators", COMMS_MAX);
	if (grow(r, (void **)&d->comms, d->n, sizeof(*d->comms)) < 0)
		return -1;
	r->comm = &d->comms[d->n++];
	*r->comm = (struct decisions_comm){0};
	r->seen = 0;
	return 0;
}

static int begin_cost(struct reader *r, const char *kind)
{
	uint32_t k = 0;

	if (!r->comm)
		return wrong(r, "[cost %.40s] stands in front of the first [comm]", kind);
	if (end_op(r) < 0 || need_shape(r, "[cost]") < 0 ||
	    take_choice(r, "[cost]", kind, KIND_WORDS, &k) < 0)
		return -1;
	if (r->comm->ops[k].n)
		return wrong(r, "[cost %s] stands twice in this [comm]", kind);
	r->op = &r->comm->ops[k];
	return 0;
}

static int take_bracket(struct reader *r, char *line)
{
	size_t n = strlen(line);

	if (line[n - 1] != ']')
		return wrong(r, "'%.60s' has no ']'", line);
	line[n - 1] = '\0';
	if (strcmp(line, "[comm") == 0)
		return begin_comm(r);
	if (strncmp(line, "[cost ", 6) == 0)
		return begin_cost(r, line + 6);
	return wrong(r, "there is no [%.60s]; there are [comm] and [cost KIND]", line + 1);
}

/* --- lines ------------------------------------------------------------------------------- */

/* One node has at least one rank, all as many. */
static int check_shape(struct reader *r)
{
	const struct decisions_comm *c = r->comm;

	if (!(r->seen & (1u << COMM_RANKS)) || !(r->seen & (1u << COMM_NODES)))
		return 0;
	if (c->n_ranks % c->n_nodes == 0 && c->n_ranks / c->n_nodes <= LOCAL_MAX)
		return 0;
	return wrong(r, "%u ranks on %u nodes: each node has as many, at most %d", c->n_ranks,
		     c->n_nodes, LOCAL_MAX);
}

/* `key = value` with a key of one word. */
static int take_plain(struct reader *r, const char *name, const char *value)
{
	const char *names = r->comm ? COMM_NAMES : HEAD_NAMES;
	int key = words_find(names, name, strlen(name));

	if (key < 0)
		return wrong(r, "unknown key '%.60s'; %s: %s%s", name,
			     r->comm ? "keys of a [comm]" : "keys in front of the first [comm]",
			     names, r->comm ? "|graph NAME|order NAME CHANNEL|at BYTES" : "");
	if (r->seen & (1u << key))
		return wrong(r, "%s stands there twice", name);
	if (!r->comm)
		r->seen |= 1u << key;
	if (!r->comm)
		return take_head(r, (uint32_t)key, value);
	if (take_comm(r, (uint32_t)key, name, value) < 0)
		return -1;
	r->seen |= 1u << key;
	return check_shape(r);
}

static int take_line(struct reader *r, char *line)
{
	char *value = strstr(line, " = ");

	if (line[0] == '#' || !line[0])
		return 0;
	if (line[0] == '[')
		return take_bracket(r, line);
	if (!value)
		return wrong(r, "'%.60s' is neither 'key = value' nor '[comm]' nor '[cost KIND]'",
			     line);
	*value = '\0';
	value += 3;
	if (r->comm && strncmp(line, "graph ", 6) == 0)
		return take_graph(r, line + 6, value);
	if (r->comm && strncmp(line, "order ", 6) == 0)
		return take_order(r, line + 6, value);
	if (r->comm && strncmp(line, "at ", 3) == 0)
		return take_point(r, line + 3, value);
	return take_plain(r, line, value);
}

/* The next line without its end and the blanks before that. Return: 1; 0: there is none; -1. */
static int next_line(struct reader *r, char line[DECISIONS_LINE])
{
	const char *end;
	size_t n;

	if (r->p == r->end)
		return 0;
	r->line++;
	end = memchr(r->p, '\n', (size_t)(r->end - r->p));
	if (!end)
		return wrong(r, "the last line has no end: the file was cut off");
	n = (size_t)(end - r->p);
	if (n >= DECISIONS_LINE)
		return wrong(r, "the line is too long");
	memcpy(line, r->p, n);
	r->p = end + 1;
	while (n && line[n - 1] && strchr(" \t\r", line[n - 1]))
		n--;
	line[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			return wrong(r, "a control character: this is no text");
	return 1;
}

int decisions_parse(const char *file, const char *text, size_t len, struct decisions *ret,
		    char sentence[DECISIONS_SENTENCE])
{
	struct decisions to = {.comms = NULL};
	struct reader r = {
		.file = file, .p = text, .end = text + len, .to = &to, .sentence = sentence};
	char line[DECISIONS_LINE];
	int n;

	sentence[0] = '\0';
	while ((n = next_line(&r, line)) == 1 && take_line(&r, line) == 0)
		;
	if (n == 0 && end_comm(&r) == 0) {
		if (to.n) {
			*ret = to;
			return 0;
		}
		wrong(&r, "there is no [comm]: nbox oracle writes such a file");
	}
	decisions_deinit(&to);
	return -1;
}

static int read_all(FILE *f, char **ret_text, size_t *ret_len)
{
	size_t room = 1 << 16, n = 0;
	char *text = malloc(room);

	while (text) {
		char *more;

		n += fread(text + n, 1, room - n, f);
		if (n < room || room > DECISIONS_BYTES_MAX)
			break;
		room *= 2;
		more = realloc(text, room);
		if (!more) {
			free(text);
			return -ENOMEM;
		}
		text = more;
	}
	if (!text || ferror(f) || n > DECISIONS_BYTES_MAX) {
		int e = !text ? ENOMEM : ferror(f) ? errno : EFBIG;

		free(text);
		return -e;
	}
	*ret_text = text;
	*ret_len = n;
	return 0;
}

int decisions_read(const char *path, struct decisions *ret, char sentence[DECISIONS_SENTENCE])
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len = 0;
	int r = f ? read_all(f, &text, &len) : -errno;

	if (f)
		fclose(f);
	if (r < 0) {
		snprintf(sentence, DECISIONS_SENTENCE, "cannot read %.400s: %s", path,
			 strerror(-r));
		return -1;
	}
	r = decisions_parse(path, text, len, ret, sentence);
	free(text);
	return r;
}

void decisions_deinit(struct decisions *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct decisions_comm *c = &d->comms[i];

		for (size_t k = 0; k < c->n_orders; k++)
			free(c->orders[k].ranks);
		free(c->orders);
		for (size_t k = 0; k < N_COSTED; k++)
			free(c->ops[k].points);
	}
	free(d->comms);
	d->comms = NULL;
	d->n = 0;
}

const struct decisions_comm *decisions_find(const struct decisions *d, uint32_t n_ranks,
					    uint32_t n_nodes)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->comms[i].n_ranks == n_ranks && d->comms[i].n_nodes == n_nodes)
			return &d->comms[i];
	return NULL;
}

char *decisions_shapes(const struct decisions *d, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < d->n; i++) {
		char one[64];
		int n = snprintf(one, sizeof(one), "%s%u%s on %u%s", i ? ", " : "",
				 d->comms[i].n_ranks, i ? "" : " ranks", d->comms[i].n_nodes,
				 i                          ? ""
				 : d->comms[i].n_nodes == 1 ? " node"
							    : " nodes");

		if (used + (size_t)n + sizeof(", ...") > size) {
			strcpy(buf + used, ", ...");
			break;
		}
		strcpy(buf + used, one);
		used += (size_t)n;
	}
	return buf;
}
