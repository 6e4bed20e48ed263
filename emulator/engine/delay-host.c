/* See delay-host.h. A delay model gets from nbox strict parsers, random numbers and a place for its
 * error sentence. "name:key=value,..." is taken apart and checked here before the model sees it. */
#include "engine/delay-host.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/suggest.h"
#include "base/units.h"
#include "topology/named-ranks.h"

static struct delay_instance *instance_of(const struct nbox_host *host)
{
	return host->ctx;
}

static double host_chance(const struct nbox_host *host, uint64_t a, uint64_t b, uint64_t c)
{
	const struct delay_instance *in = instance_of(host);
	uint64_t h;

	/* the number in the chain makes two equal what-ifs differ */
	h = rng_hash(rng_hash(host->seed, in->number), a);
	h = rng_hash(rng_hash(h, b), c);
	return (double)(h >> 11) * 0x1p-53;
}

static void __attribute__((format(printf, 2, 3)))
host_error(const struct nbox_host *host, const char *fmt, ...)
{
	struct err *err = &instance_of(host)->chain->err;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
host_warn(const struct nbox_host *host, const char *fmt, ...)
{
	const struct delay_instance *in = instance_of(host);
	struct err *warning = &in->chain->warning;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(warning->text, sizeof(warning->text), fmt, ap);
	va_end(ap);
	err_prefix(warning, 0, "delay model %s", in->plugin.table.name);
}

/* The units' sentence with the key in front. */
static int parsed(const struct nbox_host *host, const char *key, int r)
{
	if (r == 0)
		return 0;
	err_prefix(&instance_of(host)->chain->err, r, "%s", key);
	return -1;
}

static int host_parse_time(const struct nbox_host *host, const char *key, const char *v,
			   double *ret_ns)
{
	return !v ? 0 : parsed(host, key, units_time(v, ret_ns, &instance_of(host)->chain->err));
}

static int host_parse_bandwidth(const struct nbox_host *host, const char *key, const char *v,
				double *ret)
{
	return !v ? 0 : parsed(host, key, units_bandwidth(v, ret, &instance_of(host)->chain->err));
}

static int host_parse_bytes(const struct nbox_host *host, const char *key, const char *v,
			    uint64_t *ret)
{
	return !v ? 0 : parsed(host, key, units_bytes(v, ret, &instance_of(host)->chain->err));
}

static int host_parse_ratio(const struct nbox_host *host, const char *key, const char *v,
			    double *ret)
{
	return !v ? 0 : parsed(host, key, units_ratio(v, ret, &instance_of(host)->chain->err));
}

static int host_parse_count(const struct nbox_host *host, const char *key, const char *v,
			    uint64_t *ret)
{
	return !v ? 0 : parsed(host, key, units_count(v, ret, &instance_of(host)->chain->err));
}

static int host_parse_ranks(const struct nbox_host *host, const struct nbox_kv *kv, size_t n_kv,
			    struct nbox_ranks *ret)
{
	struct delay_instance *in = instance_of(host);
	uint32_t *ranks;
	size_t n;

	if (named_ranks(&in->chain->world, nbox_value(kv, n_kv, "rank"),
			nbox_value(kv, n_kv, "node"), &ranks, &n, &in->chain->err) < 0)
		return -1;
	free(in->ranks);
	in->ranks = ranks;
	in->n_ranks = n;
	*ret = (struct nbox_ranks){.ranks = ranks, .n = n};
	return 0;
}

const char *delay_told(const struct delay_job *job, const char *name)
{
	const char *end = job->texts + job->bytes;
	size_t n = strlen(name);

	/* the first text is the version of its NCCL */
	for (const char *p = job->texts + strlen(job->texts) + 1; p < end; p += strlen(p) + 1)
		if (!strncmp(p, name, n) && p[n] == '=')
			return p + n + 1;
	return NULL;
}

static const char *host_variable(const struct nbox_host *host, const char *name)
{
	struct delay_chain *d = instance_of(host)->chain;
	size_t i = 0;

	while (i < d->n_asked && strcmp(d->asked[i], name) != 0)
		i++;
	if (i == d->n_asked && i < DELAY_MAX_ASKED)
		d->asked[d->n_asked++] = name;
	return d->job.texts ? delay_told(&d->job, name) : getenv(name);
}

#define MAX_CHOICES 32

/* Equal but for case, '-' and '_'. */
static bool same_word(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (*a == '-' || *a == '_')
			a++;
		while (*b == '-' || *b == '_')
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
	}
}

static int host_parse_choice(const struct nbox_host *host, const char *key, const char *v,
			     const char *choices, uint32_t *ret)
{
	char words[512], shown[512], *save = NULL, *word, *bar;
	const char *names[MAX_CHOICES], *near;
	size_t n = 0;

	if (!v)
		return 0;
	snprintf(words, sizeof(words), "%s", choices);
	for (word = strtok_r(words, "|", &save); word && n < MAX_CHOICES;
	     word = strtok_r(NULL, "|", &save)) {
		if (same_word(v, word)) {
			*ret = (uint32_t)n;
			return 0;
		}
		names[n++] = word;
	}
	snprintf(shown, sizeof(shown), "%s", choices);
	for (bar = shown; (bar = strchr(bar, '|')); bar++)
		*bar = ' ';
	near = suggest(v, names, n);
	host_error(host, "%s: unknown value '%.64s';%s%s%s one of: %s", key, v,
		   near ? " did you mean '" : "", near ? near : "", near ? "'?" : "", shown);
	return -1;
}

void delay_host_init(struct delay_instance *in)
{
	in->host = (struct nbox_host){
		.struct_size = sizeof(in->host),
		.seed = in->chain->seed,
		.chance = host_chance,
		.error = host_error,
		.parse_time = host_parse_time,
		.parse_bandwidth = host_parse_bandwidth,
		.parse_bytes = host_parse_bytes,
		.parse_ratio = host_parse_ratio,
		.parse_count = host_parse_count,
		.parse_choice = host_parse_choice,
		.parse_ranks = host_parse_ranks,
		.warn = host_warn,
		.variable = host_variable,
		.nccl_version = in->chain->job.texts ? in->chain->job.texts : "",
		.ctx = in,
	};
}

/* The colon before the parameters: the first one; in a path, which may have colons of its own, that
 * of ".so:". NULL: there are no parameters. */
static char *find_colon(char *text)
{
	char *colon = strchr(text, ':'), *slash = strchr(text, '/'), *so;

	if (!colon || !slash || slash > colon)
		return colon;
	so = strstr(text, ".so:");
	return so ? so + 3 : NULL;
}

static int parse_pair(struct delay_instance *in, char *pair, const char *spec, struct err *err)
{
	char *equals = strchr(pair, '=');
	size_t i;

	if (!pair[0])
		return err_set(
			err, EINVAL,
			"'%.200s' has nothing behind a colon or comma, where a key=value belongs",
			spec);
	if (!equals || equals == pair || !equals[1])
		return err_set(err, EINVAL, "'%.200s': '%.64s' is no key=value%s", spec, pair,
			       isdigit((unsigned char)pair[0])
				       ? "; several ranks are written with +, such as rank=1+5"
				       : "");
	*equals = '\0';
	for (i = 0; i < in->n_kv; i++)
		if (strcmp(in->kv[i].key, pair) == 0)
			return err_set(err, EINVAL, "'%.200s': '%.64s' is given twice", spec, pair);
	if (in->n_kv == DELAY_MAX_PARAMS)
		return err_set(err, EINVAL, "'%.200s' has more than %d parameters", spec,
			       DELAY_MAX_PARAMS);
	in->kv[in->n_kv++] = (struct nbox_kv){.key = pair, .value = equals + 1};
	return 0;
}

int delay_spec_parse(struct delay_instance *in, const char *spec, const char **ret_name,
		     struct err *err)
{
	char *colon, *pair, *comma;
	int r;

	if (strlen(spec) >= DELAY_TEXT_MAX)
		return err_set(err, EINVAL, "'%.64s...' is longer than %d characters", spec,
			       DELAY_TEXT_MAX);
	in->text = strdup(spec);
	if (!in->text)
		return err_set(err, ENOMEM, "out of memory for a delay model");
	colon = find_colon(in->text);
	comma = strchr(in->text, ',');
	if (!colon && comma && !strchr(in->text, '/'))
		return err_set(err, EINVAL,
			       "'%.200s': the parameters stand behind a colon: %.*s:%.200s", spec,
			       (int)(comma - in->text), spec, comma + 1);
	if (colon)
		*colon = '\0';
	if (!in->text[0])
		return err_set(err, EINVAL,
			       "'%.200s' names no delay model; write name:key=value,...", spec);
	*ret_name = in->text;
	for (pair = colon ? colon + 1 : NULL; pair; pair = comma) {
		comma = strchr(pair, ',');
		if (comma)
			*comma++ = '\0';
		r = parse_pair(in, pair, spec, err);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct nbox_param *delay_param(const struct delay_instance *in, const char *key)
{
	const struct nbox_param *p = in->plugin.table.params;

	for (; p && p->name; p++)
		if (strcmp(p->name, key) == 0)
			return p;
	return NULL;
}

static int unknown_key(const struct delay_instance *in, const char *key, struct err *err)
{
	const struct nbox_param *p = in->plugin.table.params;
	static const char *const scope[] = {"from",  "for",          "every", "op",
					    "bytes", "communicator", "rank",  "node"};
	const char *names[DELAY_MAX_PARAMS + ARRAY_SIZE(scope)], *near;
	char list[256] = "";
	size_t n = 0, used = 0;

	for (; p && p->name && n < DELAY_MAX_PARAMS; p++) {
		names[n++] = p->name;
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, " %s", p->name);
	}
	for (size_t i = 0; in->plugin.table.flags & NBOX_DECORATOR && i < ARRAY_SIZE(scope); i++)
		names[n++] = scope[i];
	if (n == 0)
		return err_set(err, ENOENT, "%s: unknown key '%.64s': it has no parameters",
			       in->plugin.table.name, key);
	near = suggest_long(key, names, n);
	return err_set(err, ENOENT, "%s: unknown key '%.64s';%s%s%s keys:%s", in->plugin.table.name,
		       key, near ? " did you mean '" : "", near ? near : "", near ? "'?" : "",
		       list);
}

int delay_params_check(const struct delay_instance *in, struct err *err)
{
	const struct nbox_param *p;
	size_t i;

	for (i = 0; i < in->n_kv; i++)
		if (!delay_param(in, in->kv[i].key))
			return unknown_key(in, in->kv[i].key, err);
	for (p = in->plugin.table.params; p && p->name; p++)
		if (!p->default_text && !nbox_value(in->kv, in->n_kv, p->name))
			return err_set(err, EINVAL, "%s: %s=<%s> must be given: %s",
				       in->plugin.table.name, p->name, p->unit ? p->unit : "text",
				       p->help ? p->help : "");
	return 0;
}
