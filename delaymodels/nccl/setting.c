/* See setting.h. */
#include "setting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHANNELS 64

static const char *variable(const struct nbox_host *host, const char *name)
{
	if (host->struct_size < offsetof(struct nbox_host, variable) + sizeof(host->variable) ||
	    !host->variable)
		return NULL;
	return host->variable(host, name);
}

const char *setting_job_version(const struct nbox_host *host)
{
	return host->struct_size <
			       offsetof(struct nbox_host, nccl_version) + sizeof(host->nccl_version)
		       ? ""
		       : host->nccl_version;
}

/* A whole number of the environment, as NCCL reads it. Return: 0, *ret as it was when @name is not
 * set; -1 with the sentence. */
static int read_number(const struct nbox_host *host, const char *name, int64_t least, int64_t most,
		       int64_t *ret)
{
	const char *text = variable(host, name);
	char *end;
	long long v;

	if (!text || !text[0])
		return 0;
	errno = 0;
	v = strtoll(text, &end, 0);
	if (*end || errno || v < least || v > most) {
		host->error(host, "%s=%.64s: it must be a whole number from %lld to %lld", name,
			    text, (long long)least, (long long)most);
		return -1;
	}
	*ret = v;
	return 0;
}

/* Reads the least and the most of @names[0] and @names[1]. */
static int read_range(const struct nbox_host *host, const char *const names[2], uint32_t *least,
		      uint32_t *most)
{
	int64_t low = *least, high = *most;

	if (read_number(host, names[0], 0, INT32_MAX, &low) < 0 ||
	    read_number(host, names[1], 1, INT32_MAX, &high) < 0)
		return -1;
	*least = low > MAX_CHANNELS ? MAX_CHANNELS : (uint32_t)low;
	*most = high > MAX_CHANNELS ? MAX_CHANNELS : (uint32_t)high;
	return 0;
}

static int read_channels(const struct nbox_host *host, struct setting *s)
{
	static const char *const old[] = {"NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"};
	static const char *const channels[] = {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"};
	static const char *const ctas[] = {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"};

	if (read_range(host, old, &s->min_channels, &s->max_channels) < 0 ||
	    read_range(host, channels, &s->min_channels, &s->max_channels) < 0 ||
	    read_range(host, ctas, &s->min_ctas, &s->max_ctas) < 0)
		return -1;
	return 0;
}

static int read_buffers(const struct nbox_host *host, struct setting *s)
{
	static const char *const names[N_PROTOS] = {"NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE",
						    "NCCL_BUFFSIZE"};
	/* a chunk must have a line of the protocol at least, and its size fits NCCL's int */
	static const int64_t least[N_PROTOS] = {512, 32768, 8192};
	int64_t chunk = (int64_t)s->p2p_chunk_bytes;

	for (int p = 0; p < N_PROTOS; p++) {
		int64_t bytes = (int64_t)s->buffer_bytes[p];

		if (read_number(host, names[p], least[p], INT32_MAX, &bytes) < 0)
			return -1;
		s->buffer_bytes[p] = (uint64_t)bytes;
	}
	if (read_number(host, "NCCL_P2P_NET_CHUNKSIZE", 1, INT32_MAX, &chunk) < 0)
		return -1;
	s->p2p_chunk_bytes = (uint64_t)chunk;
	return 0;
}

/* "8 8 64 64 8 64": of the tree, then the ring, by protocol. */
static int read_thresholds(const struct nbox_host *host, struct setting *s)
{
	const char *text = variable(host, "NCCL_THREAD_THRESHOLDS"), *p = text;

	for (int i = 0; p && *p && i < 2 * N_PROTOS; i++) {
		char *end;

		errno = 0;
		s->thresholds[i / N_PROTOS][i % N_PROTOS] = strtoll(p, &end, 10);
		if (end == p || errno)
			break;
		p = end + strspn(end, " ");
	}
	if (!p || !*p)
		return 0;
	host->error(host, "NCCL_THREAD_THRESHOLDS=%.64s: up to six whole numbers stand here", text);
	return -1;
}

/* NCCL's own limits. */
static uint32_t threads_within(int64_t n, uint32_t least, uint32_t most)
{
	if (n <= 0)
		return 0;
	return n % 32 || n > most ? most : n < least ? least : (uint32_t)n;
}

static int read_switches(const struct nbox_host *host, struct setting *s)
{
	int64_t nvls = ALLOWED_BY_RULE, pat = ALLOWED_BY_RULE, threads = 0, ll128 = 0;

	if (read_number(host, "NCCL_NVLS_ENABLE", 0, 2, &nvls) < 0 ||
	    read_number(host, "NCCL_PAT_ENABLE", 0, 2, &pat) < 0 ||
	    read_number(host, "NCCL_NTHREADS", -2, INT32_MAX, &threads) < 0 ||
	    read_number(host, "NCCL_LL128_NTHREADS", -2, INT32_MAX, &ll128) < 0)
		return -1;
	s->has_nvls = (int)nvls;
	s->has_pat = (int)pat;
	s->n_threads = threads_within(threads, 64, 512);
	s->n_ll128_threads = threads_within(ll128, 160, 640);
	return 0;
}

/* The parameter @key, else the variable @name, as a list. */
static int read_list(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
		     const char *key, const char *name, const char *words, size_t n_words,
		     uint8_t *allowed)
{
	const char *text = nbox_value(kv, n_kv, key);
	char own[256];

	if (!text) {
		text = variable(host, name);
		return text && text[0] ? words_apply(host, name, text, words, n_words, allowed) : 0;
	}
	if (strlen(text) >= sizeof(own)) {
		host->error(host, "%s: the list is longer than %zu characters", key,
			    sizeof(own) - 1);
		return -1;
	}
	for (size_t i = 0; i <= strlen(text); i++) /* a parameter cannot have commas */
		own[i] = text[i] == '+' ? ',' : text[i];
	return words_apply(host, key, own, words, n_words, allowed);
}

static int read_own(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
		    const char *told, struct setting *s)
{
	const char *version = nbox_value(kv, n_kv, "version"), *job = setting_job_version(host);
	uint64_t channels = 0;

	if (version && told && strcmp(version, told) != 0) {
		host->error(
			host,
			"version=%.32s, but the decision file is of NCCL %s: leave version out, "
			"or make the file with that NCCL",
			version, told);
		return -1;
	}
	s->tables = tables_find(version ? version : !job[0] && told ? told : job);
	if (!s->tables) {
		host->error(host, "%s%.32s: NCCL's versions are written as 2.28.9",
			    version ? "version=" : "the job's NCCL is ", version ? version : job);
		return -1;
	}
	if (host->parse_count(host, "channels", nbox_value(kv, n_kv, "channels"), &channels) < 0)
		return -1;
	if (channels > MAX_CHANNELS || (nbox_value(kv, n_kv, "channels") && channels == 0)) {
		host->error(host, "channels=%llu: NCCL has 1 to %d", (unsigned long long)channels,
			    MAX_CHANNELS);
		return -1;
	}
	if (channels)
		s->min_channels = s->max_channels = s->min_ctas = s->max_ctas = (uint32_t)channels;
	return 0;
}

/* --- what it decides by, in words ------------------------------------------------------- */

struct text {
	char *buf;
	size_t size, used;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	if (t->used >= t->size)
		return;
	va_start(ap, fmt);
	t->used += (size_t)vsnprintf(t->buf + t->used, t->size - t->used, fmt, ap);
	va_end(ap);
}

static void add_version(const struct nbox_host *host, const char *given, const char *told,
			const struct tables *t, struct text *ret)
{
	const char *known = t->source + strlen("NCCL "), *job = setting_job_version(host);

	add(ret, "%s, ", t->source);
	if (given && !strcmp(given, known))
		add(ret, "as given");
	else if (given)
		add(ret, "the nearest known to version=%s", given);
	else if (!job[0])
		add(ret, !told                  ? "the default"
			 : !strcmp(told, known) ? "as the decision file"
						: "the nearest known to the decision file's NCCL");
	else if (!strcmp(job, known))
		add(ret, "the job's");
	else
		add(ret, "the nearest known to the job's %s", job);
}

/* A variable that changes NCCL's choice, and the parameter that goes before it. */
struct known {
	const char *name, *key;
};

static const struct known followed[] = {
	{"NCCL_ALGO", "algo"},
	{"NCCL_PROTO", "proto"},
	{"NCCL_MIN_NRINGS", "channels"},
	{"NCCL_MAX_NRINGS", "channels"},
	{"NCCL_MIN_NCHANNELS", "channels"},
	{"NCCL_MAX_NCHANNELS", "channels"},
	{"NCCL_MIN_CTAS", "channels"},
	{"NCCL_MAX_CTAS", "channels"},
	{"NCCL_BUFFSIZE", ""},
	{"NCCL_LL_BUFFSIZE", ""},
	{"NCCL_LL128_BUFFSIZE", ""},
	{"NCCL_P2P_NET_CHUNKSIZE", ""},
	{"NCCL_NTHREADS", ""},
	{"NCCL_LL128_NTHREADS", ""},
	{"NCCL_THREAD_THRESHOLDS", ""},
	{"NCCL_NVLS_ENABLE", ""},
	{"NCCL_PAT_ENABLE", ""},
	{"NCCL_TUNER_CONFIG_FILE", "tuner"},
	{NULL, NULL},
};
/* That are not followed. */
static const struct known not_followed[] = {
	{"NCCL_CROSS_NIC", ""},
	{"NCCL_COLLNET_ENABLE", ""},
	{"NCCL_GRAPH_FILE", ""},
	{"NCCL_TOPO_FILE", ""},
	{"NCCL_P2P_DISABLE", ""},
	{"NCCL_P2P_LEVEL", ""},
	{"NCCL_NET_GDR_LEVEL", ""},
	{"NCCL_MNNVL_ENABLE", ""},
	{"NCCL_NCHANNELS_PER_NET_PEER", ""},
	{NULL, NULL},
};
static const struct known plugin[] = {{"NCCL_TUNER_PLUGIN", ""}, {NULL, NULL}};

/* Those of @list that are set and not overruled, behind what stands in @ret. */
static void add_variables(const struct nbox_host *host, const struct known *list,
			  const struct nbox_kv *kv, size_t n_kv, struct text *ret)
{
	for (; list->name; list++) {
		const char *value = variable(host, list->name);

		if (value && value[0] && !nbox_value(kv, n_kv, list->key))
			add(ret, "%s%s=%s", ret->used ? ", " : "", list->name, value);
	}
}

const char *setting_tuner(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv)
{
	const char *given = nbox_value(kv, n_kv, "tuner");
	const char *file = given ? given : variable(host, "NCCL_TUNER_CONFIG_FILE");

	return file && file[0] ? file : NULL;
}

static void describe(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
		     const char *told, struct setting *s)
{
	struct text source = {s->source, sizeof(s->source), 0};
	struct text not = {s->unknown, sizeof(s->unknown), 0};

	add_version(host, nbox_value(kv, n_kv, "version"), told, s->tables, &source);
	s->limits_at = source.used < sizeof(s->source) ? source.used : strlen(s->source);
	for (size_t i = 0; i < n_kv; i++)
		if (strcmp(kv[i].key, "version") != 0 && strcmp(kv[i].key, "decisions") != 0)
			add(&source, ", %s=%s", kv[i].key, kv[i].value);
	add_variables(host, followed, kv, n_kv, &source);
	add_variables(host, not_followed, kv, n_kv, &not );
	if (!setting_tuner(host, kv, n_kv))
		add_variables(host, plugin, kv, n_kv, &not );
}

int setting_read(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
		 const char *told, struct setting *ret)
{
	struct setting s = {
		.max_channels = MAX_CHANNELS,
		.max_ctas = MAX_CHANNELS,
		.buffer_bytes = {512 << 10, 4915200, 4 << 20},
		.p2p_chunk_bytes = 128 << 10,
		.thresholds = {{-1, -1, -1}, {-1, -1, -1}},
	};

	memset(s.algo, ALLOWED_YES, sizeof(s.algo));
	memset(s.proto, ALLOWED_YES, sizeof(s.proto));
	for (int k = 0; k < N_COSTED; k++)
		s.proto[k][NBOX_LL128] = ALLOWED_BY_RULE;
	if (read_list(host, kv, n_kv, "algo", "NCCL_ALGO", ALGO_WORDS, N_ALGOS, &s.algo[0][0]) <
		    0 ||
	    read_list(host, kv, n_kv, "proto", "NCCL_PROTO", PROTO_WORDS, N_PROTOS,
		      &s.proto[0][0]) < 0 ||
	    read_channels(host, &s) < 0 || read_buffers(host, &s) < 0 ||
	    read_thresholds(host, &s) < 0 || read_switches(host, &s) < 0 ||
	    read_own(host, kv, n_kv, told, &s) < 0)
		return -1;
	describe(host, kv, n_kv, told, &s);
	*ret = s;
	return 0;
}
