/* See decisions.h. One line is read at a time; a head in brackets ends what stands above it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decisions-reading.h"

#define COMMS_MAX 4096
#define RANKS_MAX (1 << 24)

static int take_text(struct reading *r, const char *key, const char *value, char *ret, size_t size)
{
	if (strlen(value) >= size)
		return reading_wrong(r, "%s: longer than %zu letters", key, size - 1);
	strcpy(ret, value);
	return 0;
}

/* --- the head --------------------------------------------------------------------------- */

enum { HEAD_FORMAT, HEAD_NCCL, HEAD_DATE, HEAD_GPUS, HEAD_MADE, HEAD_KEYS };
#define HEAD_NAMES "format|nccl|date|gpus|made"

static int take_head(struct reading *r, uint32_t key, const char *value)
{
	struct decisions *d = r->to;
	uint64_t format = 0;

	switch (key) {
	case HEAD_FORMAT:
		if (reading_count(r, "format", value, 0, UINT32_MAX, &format) < 0)
			return -1;
		return format == DECISIONS_FORMAT
			       ? 0
			       : reading_wrong(
					 r,
					 "format %llu; this nbox reads %d: write the file again with "
					 "its nbox oracle",
					 (unsigned long long)format, DECISIONS_FORMAT);
	case HEAD_NCCL:
		if (strspn(value, "0123456789.") != strlen(value) || !tables_find(value))
			return reading_wrong(r,
					     "nccl: '%.60s'; NCCL's versions are written as 2.28.9",
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

static int take_comm(struct reading *r, uint32_t key, const char *name, const char *value)
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
		return reading_channels(r, name, value, key != COMM_NVLS, channels[key]);
	if (reading_count(r, name, value, key == COMM_RANKS ? 2 : 1, RANKS_MAX, &v) < 0)
		return -1;
	if (key == COMM_RANKS)
		c->n_ranks = (uint32_t)v;
	else
		c->n_nodes = (uint32_t)v;
	return 0;
}

/* --- heads in brackets ---------------------------------------------------------------------- */

static int check_missing(struct reading *r, const char *names, uint32_t n_keys, const char *what)
{
	for (uint32_t key = 0; key < n_keys; key++) {
		int len;
		const char *name = words_at(names, key, &len);

		if (!(r->seen & (1u << key)))
			return reading_wrong(r, "%s above has no %.*s", what, len, name);
	}
	return 0;
}

static int end_op(struct reading *r)
{
	int has_two = !r->op || r->op->n >= 2;

	r->op = NULL;
	return has_two ? 0
		       : reading_wrong(
				 r, "the [cost] above has fewer than two sizes, and nothing can be "
				    "said between them: ask for more sizes");
}

static int end_comm(struct reading *r)
{
	const struct decisions_comm *c = r->comm;

	if (!c)
		return check_missing(r, HEAD_NAMES, HEAD_KEYS, "the head");
	if (end_op(r) < 0 || check_missing(r, COMM_NAMES, COMM_KEYS, "the [comm]") < 0)
		return -1;
	for (const struct decisions_comm *o = r->to->comms; o < c; o++)
		if (o->n_ranks == c->n_ranks && o->n_nodes == c->n_nodes)
			return reading_wrong(
				r, "there are two [comm] of %u ranks on %u nodes: keep one",
				c->n_ranks, c->n_nodes);
	return 0;
}

static int begin_comm(struct reading *r)
{
	struct decisions *d = r->to;

	if (end_comm(r) < 0)
		return -1;
	if (d->n == COMMS_MAX)
		return reading_wrong(r, "more than %d communicators", COMMS_MAX);
	if (reading_grow(r, (void **)&d->comms, d->n, sizeof(*d->comms)) < 0)
		return -1;
	r->comm = &d->comms[d->n++];
	*r->comm = (struct decisions_comm){0};
	r->seen = 0;
	return 0;
}

static int begin_cost(struct reading *r, const char *kind)
{
	uint32_t k = 0;

	if (!r->comm)
		return reading_wrong(r, "[cost %.40s] stands in front of the first [comm]", kind);
	if (end_op(r) < 0 || reading_need_shape(r, "[cost]") < 0 ||
	    reading_choice(r, "[cost]", kind, KIND_WORDS, &k) < 0)
		return -1;
	if (r->comm->ops[k].n)
		return reading_wrong(r, "[cost %s] stands twice in this [comm]", kind);
	r->op = &r->comm->ops[k];
	return 0;
}

static int take_bracket(struct reading *r, char *line)
{
	size_t n = strlen(line);

	if (line[n - 1] != ']')
		return reading_wrong(r, "'%.60s' has no ']'", line);
	line[n - 1] = '\0';
	if (strcmp(line, "[comm") == 0)
		return begin_comm(r);
	if (strncmp(line, "[cost ", 6) == 0)
		return begin_cost(r, line + 6);
	return reading_wrong(r, "there is no [%.60s]; there are [comm] and [cost KIND]", line + 1);
}

/* --- lines ------------------------------------------------------------------------------- */

/* One node has at least one rank, all as many. */
static int check_shape(struct reading *r)
{
	const struct decisions_comm *c = r->comm;

	if (!c->n_ranks || !c->n_nodes)
		return 0;
	if (c->n_ranks % c->n_nodes == 0 && c->n_ranks / c->n_nodes <= LOCAL_MAX)
		return 0;
	return reading_wrong(r, "%u ranks on %u nodes: each node has as many, at most %d",
			     c->n_ranks, c->n_nodes, LOCAL_MAX);
}

/* `key = value` with a key of one word. */
static int take_plain(struct reading *r, const char *name, const char *value)
{
	const char *names = r->comm ? COMM_NAMES : HEAD_NAMES;
	int key = words_find(names, name, strlen(name));

	if (key < 0)
		return reading_wrong(r, "unknown key '%.60s'; %s: %s%s", name,
				     r->comm ? "keys of a [comm]"
					     : "keys in front of the first [comm]",
				     names,
				     r->comm ? "|graph NAME|order NAME CHANNEL|at BYTES" : "");
	if (r->seen & (1u << key))
		return reading_wrong(r, "%s stands there twice", name);
	r->seen |= 1u << key;
	if (!r->comm)
		return take_head(r, (uint32_t)key, value);
	return take_comm(r, (uint32_t)key, name, value) < 0 ? -1 : check_shape(r);
}

static int take_line(struct reading *r, char *line)
{
	char *value = strstr(line, " = ");

	if (line[0] == '#' || !line[0])
		return 0;
	if (line[0] == '[')
		return take_bracket(r, line);
	if (!value)
		return reading_wrong(
			r, "'%.60s' is neither 'key = value' nor '[comm]' nor '[cost KIND]'", line);
	*value = '\0';
	value += 3;
	if (r->comm && strncmp(line, "graph ", 6) == 0)
		return reading_graph(r, line + 6, value);
	if (r->comm && strncmp(line, "order ", 6) == 0)
		return reading_order(r, line + 6, value);
	if (r->comm && strncmp(line, "at ", 3) == 0)
		return reading_point(r, line + 3, value);
	return take_plain(r, line, value);
}

/* The next line without its end and the blanks before that. Return: 1; 0: there is none; -1. */
static int next_line(struct reading *r, char line[DECISIONS_LINE])
{
	const char *end;
	size_t n;

	if (r->p == r->end)
		return 0;
	r->line++;
	end = memchr(r->p, '\n', (size_t)(r->end - r->p));
	if (!end)
		return reading_wrong(r, "the last line has no end: the file was cut off");
	n = (size_t)(end - r->p);
	if (n >= DECISIONS_LINE)
		return reading_wrong(r, "the line is too long");
	memcpy(line, r->p, n);
	r->p = end + 1;
	while (n && line[n - 1] && strchr(" \t\r", line[n - 1]))
		n--;
	line[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			return reading_wrong(r, "a control character: this is no text");
	return 1;
}

int decisions_parse(const char *file, const char *text, size_t len, struct decisions *ret,
		    char sentence[DECISIONS_SENTENCE])
{
	struct decisions to = {.comms = NULL};
	struct reading r = {
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
		reading_wrong(&r, "there is no [comm]: nbox oracle writes such a file");
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
