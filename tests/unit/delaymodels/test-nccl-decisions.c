/* The nccl scheduler against NCCL's own decisions: nccl-decisions.csv. */
#include "delay-test.h"

#include <stdlib.h>
#include <strings.h>

#include "engine/solve-plan.h"
#include "schedule/rails.h"
#include "schedule/schedule.h"
#include "schedule/tree.h"

#define LINE_MAX_BYTES 256

/* The machines that NCCL was asked about. */
/* clang-format off */
static const struct machine {
	const char *name;
	struct nbox_fabric fabric;
} machines[] = {
	{"dgx1-v100",
	 {.sm_min = 70, .intra = NBOX_NVLINK, .cpu = NBOX_INTEL, .gpu_bytes_per_ns = 150, .n_nics = 4,
	  .pcie_bytes_per_ns = 15.75, .nic_bytes_per_ns = 12.5, .net_latency_ns = 2000}},
	{"dgx-a100",
	 {.sm_min = 80, .intra = NBOX_NVSWITCH, .cpu = NBOX_AMD, .gpu_bytes_per_ns = 300, .n_nics = 8,
	  .distance = NBOX_PXB, .pcie_bytes_per_ns = 31.5, .nic_bytes_per_ns = 25,
	  .net_latency_ns = 2000}},
	{"p4d",
	 {.sm_min = 80, .intra = NBOX_NVSWITCH, .cpu = NBOX_INTEL, .gpu_bytes_per_ns = 300,
	  .n_nics = 4, .pcie_bytes_per_ns = 31.5, .nic_bytes_per_ns = 12.5,
	  .net_latency_ns = 25000}},
	{"dgx-h100",
	 {.sm_min = 90, .intra = NBOX_NVSWITCH, .cpu = NBOX_INTEL, .gpu_bytes_per_ns = 450,
	  .has_nvls = 1, .n_nics = 8, .pcie_bytes_per_ns = 63, .nic_bytes_per_ns = 50,
	  .net_latency_ns = 2000}},
	{"alps",
	 {.sm_min = 90, .intra = NBOX_NVLINK, .cpu = NBOX_ARM, .gpu_bytes_per_ns = 450, .n_nics = 4,
	  .pcie_bytes_per_ns = 63, .nic_bytes_per_ns = 25, .net_latency_ns = 4000}},
	{"dgx-b200",
	 {.sm_min = 100, .intra = NBOX_NVSWITCH, .cpu = NBOX_INTEL, .gpu_bytes_per_ns = 900,
	  .has_nvls = 1, .n_nics = 8, .pcie_bytes_per_ns = 63, .nic_bytes_per_ns = 50,
	  .net_latency_ns = 2000}},
};
/* clang-format on */

/* What a line of the file says. */
struct decision {
	char machine[32], op[16], algo[16], proto[8];
	uint32_t ranks, nodes, channels, threads;
	uint64_t bytes, chunk, messages;
	double cost_us;
};

static struct nbox_fabric fabric_of(const struct decision *d)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (strcmp(machines[i].name, d->machine) == 0) {
			struct nbox_fabric f = machines[i].fabric;
			uint32_t all = strcmp(d->machine, "alps") == 0 ? 4 : 8;

			f.struct_size = sizeof(f);
			f.sm_max = f.sm_min;
			f.has_gdr = 1;
			f.n_domains = d->nodes;
			f.ranks_per_domain = f.most_ranks_per_domain = d->ranks;
			f.n_nics = (f.n_nics * d->ranks + all - 1) / all; /* those near to them */
			return f;
		}
	fail_msg("no machine %s", d->machine);
	return (struct nbox_fabric){0};
}

/* Number of @word in "a|b|c". */
static uint32_t number_of(const char *word, const char *words)
{
	for (uint32_t i = 0; *words; i++) {
		size_t n = strcspn(words, "|");

		if (strlen(word) == n && strncasecmp(word, words, n) == 0)
			return i;
		words += n + (words[n] == '|');
	}
	fail_msg("%s is none of %s", word, words);
	return 0;
}

/* The messages of the first channel to one neighbour, one way. */
static uint64_t messages_of(const struct nbox_plan *p, const struct nbox_op *op, uint32_t ranks)
{
	struct sched s, call = {.kind = (enum coll_kind)op->kind,
				.n_ranks = op->n_ranks,
				.ranks_per_node = ranks,
				.n_channels = 1,
				.elem_bytes = op->elem_bytes,
				.bytes = op->bytes};
	struct err err = {""};
	uint32_t src;

	if (planned_schedule(p, &call, ranks, &s, &err) < 0)
		fail_msg("%s", err.text);
	if (s.algo == SCHED_TREE) {
		src = sched_rank_at(&s, 0, 1);
		return sched_conn_messages(&s, src, (uint32_t)sched_tree_parent(&s, src, 0, 0),
					   (uint16_t)sched_tree_lane(0, 0, SCHED_UP));
	}
	if (op->kind == NBOX_REDUCE) /* the chain ends at the root */
		return sched_conn_messages(&s, sched_previous(&s, 0, 0), 0, 0);
	return sched_conn_messages(&s, 0, sched_next(&s, 0, 0), 0);
}

static void check(struct delay_chain *chain, const struct decision *d, const char *line)
{
	struct nbox_fabric f = fabric_of(d);
	uint32_t n = d->ranks * d->nodes, kind = number_of(d->op, NBOX_OP_KINDS), algo;
	int is_part = kind == NBOX_ALLGATHER || kind == NBOX_REDUCESCATTER;
	struct nbox_op op = test_op(kind, n, d->nodes, is_part ? d->bytes / n : d->bytes);
	struct nbox_plan p;
	struct err err = {""};

	op.algo = NBOX_ALGO_ANY;
	if (delay_plan(chain, &op, &f, &p, &err) != 0)
		fail_msg("%s: %s", line, err.text);
	algo = number_of(d->algo, "ring|tree|direct|chain|nvls|nvlstree|pat");
	if (algo == NBOX_RING && (kind == NBOX_BROADCAST || kind == NBOX_REDUCE))
		algo = NBOX_CHAIN;
	if (p.algo != algo || p.proto != number_of(d->proto, "ll|ll128|simple") ||
	    p.n_lanes != d->channels || p.n_threads != d->threads || p.chunk_bytes != d->chunk)
		fail_msg("%s: got algorithm %u, protocol %u, %u channels, %u threads, chunk %lu",
			 line, p.algo, p.proto, p.n_lanes, p.n_threads,
			 (unsigned long)p.chunk_bytes);
	test_near(p.estimate_ns, d->cost_us * 1e3, 1e-6);
	if (p.whole_ns < 0 && messages_of(&p, &op, d->ranks) != d->messages)
		fail_msg("%s: got %lu messages", line,
			 (unsigned long)messages_of(&p, &op, d->ranks));
}

static void decisions_are_those_of_nccl(void **state)
{
	FILE *f = fopen(DECISIONS, "re");
	CHAIN chain = test_must_open("nccl", NULL, 0);
	char line[LINE_MAX_BYTES];
	unsigned long n = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct decision d;

		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || strncmp(line, "machine,", 8) == 0)
			continue;
		if (sscanf(line, "%31[^,],%u,%u,%15[^,],%lu,%15[^,],%7[^,],%u,%u,%lu,%lu,%lf",
			   d.machine, &d.ranks, &d.nodes, d.op, &d.bytes, d.algo, d.proto,
			   &d.channels, &d.threads, &d.chunk, &d.messages, &d.cost_us) != 12)
			fail_msg("%s: not a decision", line);
		check(chain, &d, line);
		n++;
	}
	fclose(f);
	assert_true(n > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decisions_are_those_of_nccl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
