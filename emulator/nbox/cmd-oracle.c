/* nbox oracle: NCCL itself says how it would run the ops of a larger cluster. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/doctor/paths.h"
#include "nbox/oracle/host.h"
#include "nbox/oracle/page.h"
#include "nbox/oracle/request.h"
#include "nbox/oracle/result.h"
#include "nbox/run/results.h"

static int usage(void)
{
	fputs("usage: nbox oracle --nodes N[,N...] [OPTION...]\n\n"
	      "On a node with GPUs: the job's own NCCL makes communicators of the virtual size, of which only this node's ranks\n"
	      "exist, and nbox asks it about each op: which algorithm, protocol and channels it would take, and the cost of each.\n"
	      "The answers go to a file that any machine can use: --model nccl:decisions=FILE. The job's NCCL_ variables count.\n\n",
	      stdout);
	option_help(COMMAND_ORACLE, 24, stdout);
	return 0;
}

struct made {
	struct oracle_nccl nccl;
	struct oracle_world worlds[ORACLE_WORLDS_MAX];
	size_t n;
};

static void made_deinit(struct made *m)
{
	for (size_t i = 0; i < m->n; i++)
		oracle_world_deinit(&m->worlds[i]);
}

static int choose_shape(const struct oracle_nccl *n, struct oracle_shape *s, struct err *err)
{
	if (!s->gpus_per_node)
		s->gpus_per_node = (uint32_t)n->n_gpus;
	if (s->gpus_per_node > (uint32_t)n->n_gpus)
		return err_set(
			err, EINVAL,
			"there are %d GPUs here, and the virtual nodes are to have %u: NCCL's topology "
			"is this node's",
			n->n_gpus, s->gpus_per_node);
	if (s->n_nodes * s->gpus_per_node < 2)
		return err_set(err, EINVAL, "a communicator of one rank sends nothing");
	return 0;
}

/* "2,2x8": the same on a node of eight GPUs. A file has each once. */
static bool is_made(const struct made *m, const struct oracle_shape *s)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->worlds[i].n_nodes == s->n_nodes &&
		    m->worlds[i].gpus_per_node == s->gpus_per_node)
			return true;
	return false;
}

/* @log: NCCL's is printed there; NULL: nowhere. */
static int ask_world(const struct oracle_request *q, const struct paths *paths,
		     struct oracle_shape shape, struct made *m, FILE *log, struct err *err)
{
	struct oracle_host *h = NULL;
	int r = oracle_host_new(q, paths->oracle, paths->oracle_plugin, &h, &m->nccl, err);

	if (r == 0)
		r = choose_shape(&m->nccl, &shape, err);
	if (r == 0 && !is_made(m, &shape)) {
		r = oracle_host_world(h, &shape, &m->worlds[m->n], err);
		m->n += r == 0;
	}
	if (log)
		oracle_host_print_log(h, log);
	oracle_host_free(h);
	return r;
}

static int write_all(const struct oracle_request *q, const struct made *m, struct err *err)
{
	const struct oracle_nccl *n = &m->nccl;
	struct decisions d = {.n = 0};
	char gpus[96], made[DECISIONS_TEXT];
	FILE *to = NULL;
	int r;

	snprintf(gpus, sizeof(gpus), "%d x %s", n->n_gpus, n->gpu[0] ? n->gpu : "a GPU");
	snprintf(made, sizeof(made), "by nbox oracle, %s",
		 q->topo ? q->topo : "of this node's own topology");
	r = oracle_result(n, gpus, made, m->worlds, m->n, &d, err);
	if (r == 0)
		r = file_create(q->out, &to, err);
	if (r == 0) {
		decisions_write(&d, to);
		r = file_finish(to, q->out, err);
	}
	if (r == 0 && !file_is_stdout(q->out)) {
		oracle_page_head(n, stdout);
		for (size_t i = 0; i < m->n; i++)
			oracle_page_world(&m->worlds[i], &d.comms[i], stdout);
		oracle_page_tail(q->out, &m->worlds[m->n - 1], stdout);
	}
	decisions_deinit(&d);
	return r;
}

/* One world could not be made: those before it may have taken minutes. */
static void write_first(const struct oracle_request *q, const struct made *m)
{
	struct err err = {""};

	if (write_all(q, m, &err) < 0)
		fprintf(stderr, "nbox oracle: %s\n", err.text);
	else
		fprintf(stderr, "nbox oracle: only the first %zu of %zu worlds were asked about:\n",
			m->n, q->n_shapes);
}

static int answer(const struct oracle_request *q, struct err *err)
{
	struct made m = {.n = 0};
	struct paths paths;
	FILE *log = NULL;
	int r = paths_find(&paths, PATHS_ORACLE, err), kept = 0;

	if (r == 0 && !file_is_stdout(q->out)) /* before minutes are spent on it */
		r = results_check_file("-o", q->out, NULL, err);
	if (r == 0 && q->nccl_log)
		r = file_create(q->nccl_log, &log, err);
	for (size_t i = 0; r == 0 && i < q->n_shapes; i++)
		r = ask_world(q, &paths, q->shapes[i], &m, log, err);
	if (log)
		kept = file_finish(log, q->nccl_log, r < 0 ? NULL : err);
	if (r == 0)
		r = kept < 0 ? kept : write_all(q, &m, err);
	else if (m.n)
		write_first(q, &m);
	made_deinit(&m);
	return r;
}

int cmd_oracle(int argc, char **argv)
{
	struct oracle_request q;
	struct err err = {""};
	int r;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return usage();
	r = oracle_request_take(argc, argv, &q, &err);
	if (r < 0) {
		fprintf(stderr, "nbox oracle: %s\n", err.text);
		return 2;
	}
	if (getenv("NCCL_TUNER_PLUGIN"))
		fprintf(stderr,
			"nbox oracle: NCCL_TUNER_PLUGIN=%s is not asked: nbox's own comes in its place; what "
			"it would change is not in the file\n",
			getenv("NCCL_TUNER_PLUGIN"));
	r = answer(&q, &err);
	if (r < 0)
		fprintf(stderr, "nbox oracle: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? 1 : 0;
}
