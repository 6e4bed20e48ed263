/* See log.h. */
#include "nbox/oracle/log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/words.h"

#define LINE_MAX_BYTES 4096
#define TREES_LINE_MAX 1027 /* of NCCL's text */
#define COUNT_MAX 1000000
#define THREAD_BYTES_MAX (INT64_C(1) << 40)
#define PAT_THREAD_BYTES 64 /* NCCL does not log it, and no variable sets it */

/* Behind "host:pid:tid [0] NCCL INFO "; NULL: another line. */
static const char *body(const char *line)
{
	static const char mark[] = " NCCL INFO ";
	const char *p = strstr(line, mark);

	return p ? p + sizeof(mark) - 1 : NULL;
}

static bool has(const char *line, const char *head)
{
	return strncmp(line, head, strlen(head)) == 0;
}

static bool is_in(int32_t channel, int32_t rank)
{
	return channel >= 0 && channel < NCCL_LOG_CHANNELS_MAX && rank >= 0 &&
	       rank < NCCL_LOG_GPUS_MAX;
}

static void take_graph(struct nccl_log *l, const char *s)
{
	struct nccl_log_graph g;

	if (l->n_graphs == NCCL_LOG_GRAPHS_MAX ||
	    sscanf(s,
		   "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %7[A-Z0-9]/%7[A-Z0-9], sameChannels %d",
		   &g.pattern, &g.cross_nic, &g.n_channels, &g.bw_intra, &g.bw_inter, g.type_intra,
		   g.type_inter, &g.same_channels) != 8)
		return;
	l->graphs[l->n_graphs++] = g;
}

static void take_ring(struct nccl_log *l, const char *s)
{
	int32_t c, prev, rank, next;

	if (sscanf(s, "Ring %d : %d -> %d -> %d", &c, &prev, &rank, &next) != 4 || !is_in(c, rank))
		return;
	l->ring_prev[c][rank] = prev;
	l->ring_next[c][rank] = next;
}

static void set_tree(struct nccl_log *l, int32_t c, int32_t rank, int32_t up, const int32_t *down)
{
	if (!is_in(c, rank))
		return;
	l->tree_up[c][rank] = up;
	memcpy(l->tree_down[c][rank], down, 3 * sizeof(*down));
}

/* "Trees [0] 1/-1/-1->0->8 [1] ...", of one rank; a long line ends anywhere. */
static void take_trees(struct nccl_log *l, const char *s)
{
	bool is_cut = strlen(s) >= TREES_LINE_MAX;
	int32_t c, rank, up, down[3];

	for (s = strchr(s, '['); s; s = strchr(s + 1, '['))
		if (sscanf(s, "[%d] %d/%d/%d->%d->%d", &c, &down[0], &down[1], &down[2], &rank,
			   &up) == 6 &&
		    (strchr(s + 1, '[') || !is_cut))
			set_tree(l, c, rank, up, down);
}

/* "Tree 0 : 8 -> 0 -> 1/-1/-1", of a rank that joins nodes. */
static void take_tree(struct nccl_log *l, const char *s)
{
	int32_t c, rank, up, down[3];

	if (sscanf(s, "Tree %d : %d -> %d -> %d/%d/%d", &c, &up, &rank, &down[0], &down[1],
		   &down[2]) == 6)
		set_tree(l, c, rank, up, down);
}

static bool is_count(int64_t v)
{
	return v >= 0 && v <= COUNT_MAX;
}

static void take_counts(struct nccl_log *l, const char *s)
{
	int32_t coll, collnet, nvls, p2p, per_peer;

	if (sscanf(s,
		   "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels per peer",
		   &coll, &collnet, &nvls, &p2p, &per_peer) != 5 ||
	    !is_count(coll) || !is_count(nvls) || !is_count(p2p) || !is_count(per_peer))
		return;
	l->n_channels = coll;
	l->n_nvls_channels = nvls;
	l->n_p2p_channels = p2p;
	l->n_p2p_channels_per_peer = per_peer;
}

/* "  Algorithm   |    Tree    |    Ring    |": of the columns of the next lines. */
static void take_algorithms(const char *s, int algos[N_ALGOS], size_t *n)
{
	*n = 0;
	for (s = strchr(s, '|'); s && *n < N_ALGOS; s = strchr(s, '|')) {
		size_t len;

		s += 1 + strspn(s + 1, " ");
		len = strcspn(s, " |");
		if (len)
			algos[(*n)++] = words_find(ALGO_WORDS, s, len);
	}
}

static void take_threads(struct nccl_log *l, const char *s, const int algos[N_ALGOS], size_t n)
{
	for (size_t i = 0; i < n * N_PROTOS && (s = strchr(s, '|')); i++) {
		int algo = algos[i / N_PROTOS];
		long v = strtol(++s, NULL, 10);

		if (algo >= 0 && v > 0 && v <= 1024)
			l->threads[algo][i % N_PROTOS] = (int32_t)v;
	}
}

static void take_thread_bytes(struct nccl_log *l, const char *s)
{
	int64_t v[8];

	if (sscanf(s,
		   "threadThresholds %" SCNd64 "/%" SCNd64 "/%" SCNd64 " | %" SCNd64 "/%" SCNd64
		   "/%" SCNd64 " | %" SCNd64 " | %" SCNd64,
		   &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return;
	for (int i = 0; i < 8; i++) /* none: it is not known */
		v[i] = v[i] >= 0 && v[i] <= THREAD_BYTES_MAX ? v[i] : 0;
	for (int p = 0; p < N_PROTOS; p++) {
		l->thread_bytes[ALGO_TREE][p] = v[p];
		l->thread_bytes[ALGO_RING][p] = v[3 + p];
	}
	l->thread_bytes[ALGO_COLLNET_CHAIN][N_PROTOS - 1] = v[7];
	l->thread_bytes[ALGO_PAT][N_PROTOS - 1] = PAT_THREAD_BYTES;
}

void nccl_log_parse(const char *text, size_t n, struct nccl_log *ret)
{
	char line[LINE_MAX_BYTES];
	int algos[N_ALGOS];
	size_t n_algos = 0;

	memset(ret, 0, sizeof(*ret));
	ret->n_channels = ret->n_nvls_channels = DECISIONS_NOT_KNOWN;
	ret->n_p2p_channels = ret->n_p2p_channels_per_peer = DECISIONS_NOT_KNOWN;
	for (int c = 0; c < NCCL_LOG_CHANNELS_MAX; c++)
		for (int g = 0; g < NCCL_LOG_GPUS_MAX; g++)
			ret->ring_prev[c][g] = ret->ring_next[c][g] = ret->tree_up[c][g] =
				NCCL_LOG_NONE;
	for (const char *end = text + n, *next; text < end; text = next) {
		const char *eol = memchr(text, '\n', (size_t)(end - text)), *s;
		size_t len = (size_t)((eol ? eol : end) - text);

		next = text + len + 1;
		if (len >= sizeof(line))
			len = sizeof(line) - 1;
		memcpy(line, text, len);
		line[len] = 0;
		s = body(line);
		if (!s)
			continue;
		if (has(s, "Pattern ") && strstr(line, "[0] NCCL"))
			take_graph(ret, s);
		else if (has(s, "Ring "))
			take_ring(ret, s);
		else if (has(s, "Trees "))
			take_trees(ret, s);
		else if (has(s, "Tree "))
			take_tree(ret, s);
		else if (has(s, "  Algorithm "))
			take_algorithms(s, algos, &n_algos);
		else if (has(s, " Max NThreads "))
			take_threads(ret, s, algos, n_algos);
		else if (has(s, "threadThresholds "))
			take_thread_bytes(ret, s);
		else if (strstr(s, " coll channels, "))
			take_counts(ret, s);
		else if (has(s, "comm ") && !ret->n_nodes)
			(void)!sscanf(s, "comm %*s rank %*d nRanks %d nNodes %d", &ret->n_ranks,
				      &ret->n_nodes);
	}
}

char *nccl_log_last(const char *text, char *buf, size_t size)
{
	const char *best = NULL, *p, *mark;
	size_t len;

	/* the first warning is the cause, those behind it are what came of it */
	best = strstr(text, " NCCL WARN ");
	if (best) {
		best += strlen(" NCCL WARN ");
	} else {
		for (p = text; (mark = strstr(p, " NCCL INFO ")); p = best)
			best = mark + strlen(" NCCL INFO ");
	}
	len = best ? strcspn(best, "\n") : 0;
	if (len >= size)
		len = size - 1;
	if (best)
		memcpy(buf, best, len);
	buf[len] = 0;
	return buf;
}

int32_t nccl_log_channels(const struct nccl_log *l, uint32_t algo, uint32_t proto, uint64_t bytes)
{
	int64_t n = l->n_channels, each;

	if (algo == ALGO_NVLS && l->n_nodes > 1 && l->n_nvls_channels > n)
		return l->n_channels;
	if (algo == ALGO_NVLS || algo == ALGO_NVLS_TREE)
		return l->n_nvls_channels;
	each = l->threads[algo][proto] * l->thread_bytes[algo][proto];
	if (n < 1 || each <= 0)
		return DECISIONS_NOT_KNOWN;
	if (bytes / (uint64_t)each < (uint64_t)n)
		n = (int64_t)(bytes / (uint64_t)each);
	return n < 1 ? 1 : (int32_t)n;
}
