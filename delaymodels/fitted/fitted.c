/* fitted: op times from what `nbox fit` has made of measurements.
 *
 * The file has a curve for each kind of collective and number of ranks that was measured
 * (curve.h: forms and sources). An op takes what its curve says of its wire bytes. Between two
 * numbers of ranks it takes a time between theirs; outside them the nearest one's curve holds,
 * where only the wire bytes are the op's own. A kind without a curve is no answer. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitted-file.h"
#include "nbox-delaymodel.h"

static int read_file(const struct nbox_host *host, const char *file, char **ret_text,
		     size_t *ret_len)
{
	FILE *f = fopen(file, "rb");
	char *text = f ? malloc(FITTED_BYTES_MAX) : NULL;
	size_t len = text ? fread(text, 1, FITTED_BYTES_MAX, f) : 0;
	int bad = !text || ferror(f) || len == FITTED_BYTES_MAX;

	if (bad && len == FITTED_BYTES_MAX)
		host->error(host, "file: %s is too large for a fitted model", file);
	else if (bad)
		host->error(host, "file: cannot read %s: %s", file, strerror(errno));
	if (f)
		fclose(f);
	if (bad) {
		free(text);
		return -1;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

/* What the run could only say when it is too late: which kinds there are, measured where. */
static void warn_of_limits(const struct nbox_host *host, const char *file, const struct fitted *f)
{
	char there[256] = "";
	size_t used = 0;
	const char *name = NBOX_OP_KINDS;

	for (uint32_t kind = 0; kind <= NBOX_SENDRECV; kind++) {
		uint32_t low = UINT32_MAX, high = 0;
		int len = (int)strcspn(name, "|");

		for (size_t i = 0; i < f->n; i++) {
			uint32_t n = f->curves[i].n_ranks;

			if (f->curves[i].kind != kind)
				continue;
			low = n < low ? n : low;
			high = n > high ? n : high;
		}
		if (high && used < sizeof(there) && low < high)
			used += (size_t)snprintf(there + used, sizeof(there) - used,
						 "%s%.*s (%u to %u ranks)", used ? ", " : "", len,
						 name, low, high);
		else if (high && used < sizeof(there))
			used += (size_t)snprintf(there + used, sizeof(there) - used,
						 "%s%.*s (%u ranks)", used ? ", " : "", len, name,
						 high);
		name += len + (name[len] == '|');
	}
	host->warn(host,
		   "%s was measured for %s; beyond those ranks only the bytes are rescaled, and an "
		   "op of another kind ends the job",
		   file, there);
}

static void fitted_destroy(void *model)
{
	if (model)
		fitted_deinit(model);
	free(model);
}

static int fitted_create(const struct nbox_host *host, const struct nbox_next *next,
			 const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	const char *file = nbox_value(kv, n_kv, "file");
	struct fitted *f = calloc(1, sizeof(*f));
	char sentence[FITTED_SENTENCE], *text = NULL;
	size_t len = 0;
	int r;

	(void)next;
	if (!f) {
		host->error(host, "out of memory");
		return -1;
	}
	r = read_file(host, file, &text, &len);
	if (r == 0) {
		r = fitted_parse(file, text, len, f, sentence);
		if (r < 0)
			host->error(host, "%s", sentence);
	}
	free(text);
	if (r < 0) {
		free(f);
		return -1;
	}
	warn_of_limits(host, file, f);
	*ret_model = f;
	return 0;
}

static int ask_wire(const struct fitted *f, uint32_t kind, const struct nbox_op *op, double *ret_ns)
{
	double size = (double)op->bytes / curve_wire_factor(kind, op->n_ranks);
	struct fitted_beyond beyond;

	return fitted_ns(f, kind, op->n_ranks, op->n_nodes, size, ret_ns, &beyond);
}

/* Of a group of calls the busiest rank is known, in its busier direction. That decides of an
 * all-to-all whose ranks do not send alike (Lin et al., curve.h), and calls with several peers are
 * one. */
static int group_ns(const struct fitted *f, const struct nbox_op *op, double *ret_ns)
{
	int knows = op->struct_size >= offsetof(struct nbox_op, n_peers) + sizeof(op->n_peers);
	int is_alltoall = op->n_ranks == 2 || (knows && op->n_peers > 1);
	int r = is_alltoall ? ask_wire(f, NBOX_ALLTOALL, op, ret_ns) : 1;

	return r ? ask_wire(f, NBOX_SENDRECV, op, ret_ns) : 0;
}

static int fitted_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	struct fitted_beyond beyond;
	double size = (double)op->bytes;

	if (op->kind == NBOX_SENDRECV)
		return group_ns(model, op, ret_ns);
	switch (op->kind) {
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
	case NBOX_ALLTOALL:
	case NBOX_GATHER:
	case NBOX_SCATTER:
		size *= op->n_ranks;
		break;
	default:
		break;
	}
	return fitted_ns(model, op->kind, op->n_ranks, op->n_nodes, size, ret_ns, &beyond);
}

static const struct nbox_param params[] = {
	{"file", "text", NULL, "what nbox fit --out has written"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "fitted",        .summary = "op times from measurements: the file of nbox fit",
	.flags = NBOX_UNIFORM,   .params = params,
	.create = fitted_create, .destroy = fitted_destroy,
	.op = fitted_op,
};
