/* See matrix.h. */
#include "nbox/perf/matrix.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "calibrate/skew.h"
#include "nbox/ask/configure.h"
#include "nbox/perf/collective.h"

#define FILE_BYTES_MAX (256u << 20)

struct request {
	struct config *config; /* owned, as those below */
	struct ask *ask;
	uint64_t *bytes;
	const char *file, *matrix;
	uint32_t n_ranks;
};

static void request_deinit(struct request *q)
{
	ask_close(q->ask);
	config_free(q->config);
	free(q->bytes);
}

static int take_words(struct request *q, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 2; r == 0 && i < argc;) {
		r = option_take(COMMAND_PERF, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL, "'%s' is one word too many", argv[i]);
		if (r < 0)
			return r;
		if (w.id < CONFIG_OPTIONS)
			r = config_take(q->config, &w, err);
		else if (w.id == FLAG_PERF_MATRIX)
			q->matrix = w.value;
		else if (w.id == FLAG_CONFIG)
			q->file = w.value;
		else
			r = err_set(err, EINVAL, "%s: a matrix says itself what is sent", w.name);
	}
	return r;
}

static int read_matrix(struct request *q, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int r = file_read(q->matrix, FILE_BYTES_MAX, &text, &len, err);

	return r < 0 ? r : skew_read(q->matrix, text, &q->bytes, &q->n_ranks, err);
}

/* As even ones of the mean, and of what the busiest rank has. */
static int print(const struct request *q, struct err *err)
{
	struct skew skew = skew_of(q->bytes, q->n_ranks);
	uint32_t peers = q->n_ranks - 1, n_nodes = q->config->topology.n_nodes;
	struct answer own, even = {.ns = 0}, busiest = {.ns = 0};
	char bytes[32];
	int r = ask_matrix(q->ask, q->bytes, &own, err);

	if (r == 0 && skew.bytes) {
		r = ask_op(q->ask, COLL_ALLTOALL, (uint64_t)(skew.even / peers), 1, 0, &even, err);
		r = r < 0 ? r
			  : ask_op(q->ask, COLL_ALLTOALL, skew.bytes / peers, 1, 0, &busiest, err);
	}
	if (r < 0)
		return r;
	printf("AllToAll, %u ranks on %u node%s\n", q->n_ranks, n_nodes, n_nodes == 1 ? "" : "s");
	printf("  busiest  rank %u %s %s, %.3f times the mean\n", skew.rank,
	       skew.is_receive ? "receives" : "sends",
	       units_print_bytes(skew.bytes, bytes, sizeof(bytes)),
	       skew.even > 0 ? (double)skew.bytes / skew.even : 1);
	printf("  time     %.2f us; if all sent alike %.2f us, if all sent as the busiest %.2f us\n",
	       own.ns / 1e3, even.ns / 1e3, busiest.ns / 1e3);
	return 0;
}

int perf_matrix(int argc, char **argv)
{
	CLEANUP(request_deinit) struct request q = {.config = NULL};
	struct err err = {""};
	const char *op;
	int r = config_new(&q.config);

	r = r < 0 ? r : perf_take_collective(argv[1], &op, &err);
	if (r == 0 && strcmp(op, "alltoall") != 0)
		r = err_set(&err, EINVAL, "--matrix is alltoall's");
	r = r < 0 ? r : take_words(&q, argc, argv, &err);
	r = r < 0 ? r : read_matrix(&q, &err);
	r = r < 0 ? r : ask_configure_world(q.config, q.file, q.n_ranks, &q.ask, &err);
	r = r < 0 ? r : print(&q, &err);
	if (r < 0)
		fprintf(stderr, "nbox perf: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? 2 : 0;
}
