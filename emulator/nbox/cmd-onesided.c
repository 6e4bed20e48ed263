/* nbox onesided: would one-sided stores beat an all-to-all behind the computation? */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/onesided/fuse.h"
#include "nbox/onesided/print.h"
#include "nbox/trace/load.h"

#define MESSAGES_MAX 2000000000u /* what is simulated in seconds */

struct request {
	struct onesided o;
	uint64_t dim;
	const char *json, *csv, *svg, *trace, *fuse;
};

static int usage(void)
{
	fputs("usage: nbox onesided --compute TIME --bags N --nic RATE [OPTION...]\n"
	      "       nbox onesided --trace DIR --fuse LOOKUP[,UNPACK] [OPTION...]\n\n"
	      "Tables of embeddings on each rank: vectors that it looks up for the samples of others go there by an\n"
	      "all-to-all behind the kernel, or as one-sided stores while it runs. Both times, what bounds the stores, and\n"
	      "the bytes sent over time. Without GPUs: a model, by the numbers that are given.\n"
	      "The same of a job: nbox run --what-if onesided, or nbox retime.\n\n",
	      stdout);
	option_help(COMMAND_ONESIDED, 23, stdout);
	fputs("\n  nbox onesided --compute 1ms --bags 64x16384 --ranks 4 --nic 25GB/s --sync 20us --unpack 100GB/s\n",
	      stdout);
	return 0;
}

/* "64x16384": tables of a rank x samples of the batch; "1048576": one table. */
static int take_bags(const char *value, struct onesided *o, struct err *err)
{
	char tables[32] = "1";
	const char *x = strchr(value, 'x'), *samples = x ? x + 1 : value;

	if (x)
		snprintf(tables, sizeof(tables), "%.*s", (int)(x - value), value);
	if (units_count(tables, &o->tables, err) < 0 || units_count(samples, &o->samples, err) < 0)
		return err_set(err, EINVAL,
			       "--bags '%s': so many vectors, such as 1048576, or the tables of a "
			       "rank x the samples of the batch, such as 64x16384",
			       value);
	return 0;
}

/* "4KiB,10us" */
static int take_aggregator(const char *value, struct onesided *o, struct err *err)
{
	char bytes[32];
	const char *comma = strchrnul(value, ',');
	int r;

	snprintf(bytes, sizeof(bytes), "%.*s", (int)(comma - value), value);
	r = units_bytes(bytes, &o->flush_bytes, err);
	r = r < 0 || !*comma ? r : units_time(comma + 1, &o->flush_ns, err);
	return r < 0 ? err_prefix(err, r, "--agg '%s': BYTES[,TIME]", value) : 0;
}

/* Up to 4 GiB. */
static int take_bytes(const char *value, uint32_t *ret, struct err *err)
{
	uint64_t bytes;
	int r = units_bytes(value, &bytes, err);

	if (r == 0 && bytes > UINT32_MAX)
		return err_set(err, EINVAL, "'%s': at most 4 GiB", value);
	if (r == 0)
		*ret = (uint32_t)bytes;
	return r;
}

static int take_count(const char *value, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	int r = units_count(value, ret, err);

	return r == 0 && (*ret < min || *ret > max)
		       ? err_set(err, EINVAL, "'%s': from %llu to %llu", value,
				 (unsigned long long)min, (unsigned long long)max)
		       : r;
}

static int take_value(struct request *q, const struct option_word *w, struct err *err)
{
	struct onesided *o = &q->o;
	uint64_t n;
	int r;

	switch ((unsigned int)w->id) {
	case FLAG_ONESIDED_COMPUTE:
		return units_time(w->value, &o->compute_ns, err);
	case FLAG_ONESIDED_DIM:
		return take_count(w->value, 1, 1 << 20, &q->dim, err);
	case FLAG_ONESIDED_RANKS:
		r = take_count(w->value, 2, 1 << 20, &n, err);
		o->n_ranks = r == 0 ? (uint32_t)n : 0;
		return r;
	case FLAG_ONESIDED_NIC:
		return units_nic(w->value, &o->bandwidth, &o->alpha_ns, err);
	case FLAG_ONESIDED_HEADER:
		return take_bytes(w->value, &o->header_bytes, err);
	case FLAG_ONESIDED_MSG:
		return take_bytes(w->value, &o->message_bytes, err);
	case FLAG_ONESIDED_UNPACK:
		return units_bandwidth(w->value, &o->unpack, err);
	case FLAG_ONESIDED_SYNC:
		return units_time(w->value, &o->sync_ns, err);
	case FLAG_ONESIDED_SYNC_PEER:
		return units_time(w->value, &o->sync_peer_ns, err);
	case FLAG_ONESIDED_QUIET:
		return units_time(w->value, &o->quiet_ns, err);
	case FLAG_ONESIDED_QUIET_PEER:
		return units_time(w->value, &o->quiet_peer_ns, err);
	default:
		return units_ratio(w->value, &o->slowdown, err);
	}
}

static int take_option(struct request *q, const struct option_word *w, struct err *err)
{
	int r;

	switch ((unsigned int)w->id) {
	case FLAG_ONESIDED_BAGS:
		return take_bags(w->value, &q->o, err);
	case FLAG_ONESIDED_AGG:
		return take_aggregator(w->value, &q->o, err);
	case FLAG_ONESIDED_MESH:
		q->o.has_links_to_each = true;
		return 0;
	case FLAG_ONESIDED_TRACE:
		q->trace = w->value;
		return 0;
	case FLAG_ONESIDED_FUSE:
		q->fuse = w->value;
		return 0;
	case FLAG_ONESIDED_JSON:
		q->json = w->value;
		return 0;
	case FLAG_ONESIDED_CSV:
		q->csv = w->value;
		return 0;
	case FLAG_ONESIDED_SVG:
		q->svg = w->value;
		return 0;
	default:
		r = take_value(q, w, err);
		return r < 0 ? err_prefix(err, r, "%s", w->name) : 0;
	}
}

static bool is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static bool is_table(const struct request *q)
{
	return !is_stdout(q->json) && !is_stdout(q->csv) && !is_stdout(q->svg);
}

static int take_trace(struct request *q, struct err *err)
{
	CLEANUP(trace_deinit) struct trace t = {0};
	struct onesided *o = &q->o;
	char lookup[256];
	const char *unpack;
	struct fused f;
	int r;

	if (!q->trace || !q->fuse || o->compute_ns >= 0 || o->samples || o->bandwidth > 0)
		return err_set(err, EINVAL,
			       "--trace DIR and --fuse LOOKUP[,UNPACK] go together, without "
			       "--compute, --bags and --nic");
	unpack = strchr(q->fuse, ',');
	snprintf(lookup, sizeof(lookup), "%.*s", (int)strcspn(q->fuse, ","), q->fuse);
	r = trace_load(&q->trace, 1, &t, err);
	r = r < 0 ? r : fuse_find(&t, lookup, unpack ? unpack + 1 : NULL, &f, err);
	if (r < 0)
		return r;
	o->vector_bytes = (uint32_t)(4 * q->dim);
	fuse_fill(&f, o);
	if (is_table(q))
		printf("%s: %u all-to-alls behind '%s', of %.3f us on average; %u others\n",
		       q->trace, f.n, lookup, f.wire_ns / 1e3, f.n_others);
	return 0;
}

static int check(struct request *q, struct err *err)
{
	struct onesided *o = &q->o;
	int r = q->trace || q->fuse ? take_trace(q, err) : 0;

	if (r < 0)
		return r;
	if (o->compute_ns < 0 || !o->samples || !(o->bandwidth > 0))
		return err_set(err, EINVAL, "needs %s: %s",
			       o->compute_ns < 0 ? "--compute TIME"
			       : !o->samples     ? "--bags N"
						 : "--nic RATE",
			       o->compute_ns < 0 ? "how long the kernel takes"
			       : !o->samples     ? "how many vectors each rank makes"
						 : "the bandwidth of a rank's port");
	o->vector_bytes = (uint32_t)(4 * q->dim);
	if (!o->message_bytes)
		o->message_bytes = o->vector_bytes;
	if (!o->tables || o->samples > (UINT64_C(1) << 60) / o->vector_bytes / o->tables)
		return err_set(err, EINVAL, "--bags: from 1 vector to 2^60 bytes of them");
	if (onesided_messages(o) > MESSAGES_MAX)
		return err_set(err, EINVAL,
			       "%llu messages are not simulated: at most %u; choose a larger --msg",
			       (unsigned long long)onesided_messages(o), MESSAGES_MAX);
	return 0;
}

static int write_file(const struct compared *c, const char *path,
		      void (*write)(const struct compared *c, FILE *to), struct err *err)
{
	FILE *to;
	int r = path ? file_create(path, &to, err) : 0;

	if (!path || r < 0)
		return r;
	write(c, to);
	return file_finish(to, path, err);
}

static int answer(const struct request *q, struct err *err)
{
	struct compared c;
	int r = compare_onesided(&q->o, &c);

	if (r == 0 && is_table(q))
		compared_print(&c, stdout);
	if (r == 0 && q->json)
		r = json_file_write(compared_json(&c), q->json, err);
	r = r < 0 ? r : write_file(&c, q->csv, compared_csv, err);
	r = r < 0 ? r : write_file(&c, q->svg, compared_svg, err);
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

int cmd_onesided(int argc, char **argv)
{
	struct request q = {.o = {.n_ranks = 4,
				  .compute_ns = -1,
				  .alpha_ns = 1000,
				  .header_bytes = 16,
				  .flush_ns = INFINITY},
			    .dim = 64};
	struct option_word w;
	struct err err = {""};
	int r = 0;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_ONESIDED, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		if (r == OPTION_NONE)
			r = err_set(&err, EINVAL, "'%s': what is it? See nbox onesided --help",
				    argv[i]);
		r = r == 0 ? take_option(&q, &w, &err) : r;
	}
	r = r == 0 ? check(&q, &err) : r;
	if (r < 0) {
		fprintf(stderr, "nbox onesided: %s\n", err.text);
		return 2;
	}
	r = answer(&q, &err);
	if (r < 0)
		fprintf(stderr, "nbox onesided: %s\n", err.text);
	return r < 0 ? 1 : 0;
}
