/* The decision file: what is read of it, and that the model nccl decides by it. */
#include "delay-test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "nccl/decisions.h"
#include "rng.h"

/* clang-format off */
static const char good[] =
	"# made by hand for tests: no NCCL ever said this\n"
	"format = 1\n"
	"nccl = 2.28.9\n"
	"date = 2026-11-24\n"
	"gpus = 8 x a GPU of tests\n"
	"made = by hand\n"
	"[comm]\n"
	"ranks = 16\n"
	"nodes = 2\n"
	"channels = 12\n"
	"nvls_channels = 0\n"
	"p2p_channels = 8\n"
	"p2p_channels_per_peer = 4\n"
	"graph ring = channels 6 bw_intra 30 bw_inter 24 type_intra nvl type_inter pxb pattern ring cross_nic 0 same_channels 1\n"
	"order ring 0 = 0 7 6 5 4 3 2 1\n"
	"[cost allreduce]\n"
	"at 8 = tree/ll - of tree/ll 20.5 ring/ll 30\n"
	"at 1048576 = ring/ll 3 of tree/ll 220 ring/ll 30.25\n"
	"at 4194304 = ring/ll - of tree/ll 800 ring/ll 31\n";
/* clang-format on */

static struct nbox_fabric dgx(uint32_t sm, uint32_t n_domains)
{
	return (struct nbox_fabric){
		.struct_size = sizeof(struct nbox_fabric),
		.n_domains = n_domains,
		.ranks_per_domain = 8,
		.most_ranks_per_domain = 8,
		.sm_min = sm,
		.sm_max = sm,
		.intra = NBOX_NVSWITCH,
		.cpu = sm >= 90 ? NBOX_INTEL : NBOX_AMD,
		.distance = NBOX_PXB,
		.has_nvls = sm >= 90,
		.has_gdr = 1,
		.n_nics = 8,
		.gpu_bytes_per_ns = sm >= 90 ? 450 : 300,
		.pcie_bytes_per_ns = sm >= 90 ? 64 : 32,
		.nic_bytes_per_ns = sm >= 90 ? 50 : 25,
		.net_latency_ns = 2000,
	};
}

/* A file for the time of a test, and the model's text that names it. */
struct fixture {
	char path[64], model[160];
};

static void fixture_write(struct fixture *x, const char *text, const char *more)
{
	FILE *f;
	int fd;

	strcpy(x->path, "/tmp/nbox-decisions-XXXXXX");
	fd = mkstemp(x->path);
	assert_true(fd >= 0);
	f = fdopen(fd, "w");
	fputs(text, f);
	fclose(f);
	snprintf(x->model, sizeof(x->model), "nccl:decisions=%s%s", x->path, more);
}

static void fixture_deinit(struct fixture *x)
{
	unlink(x->path);
}

#define FIXTURE CLEANUP(fixture_deinit) struct fixture

static int try_plan(struct delay_chain *d, const struct nbox_fabric *f, uint32_t kind,
		    uint64_t bytes, struct nbox_plan *ret, struct err *err)
{
	struct nbox_op op =
		test_op(kind, f->n_domains * f->most_ranks_per_domain, f->n_domains, bytes);

	op.algo = NBOX_ALGO_ANY;
	return delay_plan(d, &op, f, ret, err);
}

static struct nbox_plan must_plan(struct delay_chain *d, const struct nbox_fabric *f, uint32_t kind,
				  uint64_t bytes)
{
	struct nbox_plan p = {0};
	struct err err = {""};

	if (try_plan(d, f, kind, bytes, &p, &err) != 0)
		fail_msg("%s: %s", delay_describe(d), err.text);
	return p;
}

/* --- the file ----------------------------------------------------------------------- */

/* @good with its first @old replaced; the caller's. */
static char *changed(const char *old, const char *new)
{
	const char *at = strstr(good, old);
	char *text = malloc(sizeof(good) + strlen(new));

	if (!at)
		fail_msg("no '%s'", old);
	sprintf(text, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
	return text;
}

static void what_is_wrong_gets_its_line_and_a_remedy(void **state)
{
	static const struct {
		const char *old, *new, *says;
	} wrongs[] = {
		{"format = 1", "format = 2", "file:2: format 2; this nbox reads 1: write the file"},
		{"nccl = 2.28.9", "nccl = 2. 28", "file:3: nccl: '2. 28'; NCCL's versions"},
		{"a GPU", "a\vGPU", "file:5: a control character: this is no text"},
		{"nccl = 2.28.9", "nccl = new", "file:3: nccl: 'new'; NCCL's versions"},
		{"date", "day",
		 "file:4: unknown key 'day'; keys in front of the first [comm]: format"},
		{"date = 2026-11-24\n", "", "file:6: the head above has no date"},
		{"[comm]", "[com]", "file:7: there is no [com]; there are [comm] and [cost KIND]"},
		{"[comm]", "[comm", "file:7: '[comm' has no ']'"},
		{"ranks = 16", "ranks = 1", "file:8: ranks: '1' is no whole number from 2"},
		{"ranks = 16", "ranks = 0x10", "file:8: ranks: '0x10' is no whole number"},
		{"nodes = 2", "nodes = 3", "file:9: 16 ranks on 3 nodes: each node has as many"},
		{"channels = 12", "channel = 12",
		 "file:10: unknown key 'channel'; keys of a [comm]"},
		{"channels = 12", "channels = 65",
		 "file:10: channels: '65' is no whole number from 1 to 64"},
		{"p2p_channels = 8\n", "p2p_channels = 8\np2p_channels = 8\n",
		 "file:13: p2p_channels stands there twice"},
		{"p2p_channels = 8\n", "", "file:18: the [comm] above has no p2p_channels"},
		{"graph ring", "graph rings", "file:14: graph: 'rings' is none of tree|ring|"},
		{"bw_inter 24", "bw_inter fast", "file:14: bw_inter: 'fast' is no number"},
		{"bw_inter 24", "bw_inter nan", "file:14: bw_inter: 'nan' is no number"},
		{"type_inter pxb", "type_inter ib", "file:14: type_inter: 'ib' is none of loc|nvl"},
		{" same_channels 1", "", "file:14: graph ring must have each of channels|"},
		{"2 1\n", "2 2\n", "file:15: order: rank 2 stands there twice"},
		{"2 1\n", "2 8\n", "file:15: order: '8' is no whole number from 0 to 7"},
		{"2 1\n", "2\n", "file:15: order: 7 ranks, a node of this communicator has 8"},
		{"[cost allreduce]", "[cost allsum]",
		 "file:16: [cost]: 'allsum' is none of allreduce|"},
		{"at 8 = tree/ll -", "at 8 = tree/lll -",
		 "file:17: the protocol: 'lll' is none of ll|"},
		{"of tree/ll 20.5", "of oak/ll 20.5",
		 "file:17: the algorithm: 'oak' is none of tree|"},
		{"of tree/ll 20.5", "of tree 20.5", "file:17: 'tree' is no algorithm/protocol"},
		{"of tree/ll 20.5", "of tree/ll -1", "file:17: a cost: '-1' is no number from 0"},
		{"of tree/ll 20.5", "tree/ll 20.5", "file:17: at: 'of' and the costs come behind"},
		{"of tree/ll 20.5", "of", "file:17: what NCCL takes is not among what has a cost"},
		{"of tree/ll 20.5", "of tree/ll 31",
		 "file:17: NCCL would take ring/ll, of 30 us, before"},
		{"ring/ll 3 of tree/ll 220", "ring/ll 3 of tree/ll 30.25",
		 "file:18: NCCL would take tree/ll, of 30.25 us, before"},
		{"tree/ll 220", "ring/ll 220", "file:18: ring/ll has two costs"},
		{"at 1048576", "at 8", "file:18: 8 bytes after 8: sizes must rise"},
		{"ring/ll 31\n", "ring/ll 3",
		 "file:19: the last line has no end: the file was cut off"},
		{"at 4194304", "bt 4194304", "file:19: unknown key 'bt 4194304'; keys of a [comm]"},
	};
	char sentence[DECISIONS_SENTENCE];

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		char *text = changed(wrongs[i].old, wrongs[i].new);
		struct decisions d;

		if (decisions_parse("file", text, strlen(text), &d, sentence) == 0)
			fail_msg("'%s' was taken", wrongs[i].new);
		if (strncmp(sentence, wrongs[i].says, strlen(wrongs[i].says)) != 0)
			fail_msg("'%s' does not begin with '%s'", sentence, wrongs[i].says);
		free(text);
	}
}

static void what_stands_twice_or_alone_is_refused(void **state)
{
	char sentence[DECISIONS_SENTENCE], text[2 * sizeof(good)];
	struct decisions d;
	const char *comm = strstr(good, "[comm]");

	(void)state;
	snprintf(text, sizeof(text), "%s%s", good, comm);
	assert_int_equal(decisions_parse("file", text, strlen(text), &d, sentence), -1);
	assert_non_null(strstr(sentence, "two [comm] of 16 ranks on 2 nodes: keep one"));
	snprintf(text, sizeof(text), "%s[cost allreduce]\n", good);
	assert_int_equal(decisions_parse("file", text, strlen(text), &d, sentence), -1);
	assert_non_null(strstr(sentence, "[cost allreduce] stands twice"));
	snprintf(text, sizeof(text), "%s[cost reduce]\nat 8 = ring/ll - of ring/ll 1\n", good);
	assert_int_equal(decisions_parse("file", text, strlen(text), &d, sentence), -1);
	assert_non_null(strstr(sentence, "fewer than two sizes"));
	assert_int_equal(decisions_parse("file", good, (size_t)(comm - good), &d, sentence), -1);
	assert_non_null(strstr(sentence, "there is no [comm]"));
	assert_int_equal(decisions_read("/nowhere", &d, sentence), -1);
	assert_string_equal(sentence, "cannot read /nowhere: No such file or directory");
}

static void what_is_written_is_read_again(void **state)
{
	char sentence[DECISIONS_SENTENCE], *text = NULL;
	struct decisions d, again;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	(void)state;
	assert_int_equal(decisions_parse("file", good, strlen(good), &d, sentence), 0);
	strcpy(d.gpus, "two\nlines");
	d.made[0] = '\0';
	decisions_write(&d, to);
	fclose(to);
	if (decisions_parse("again", text, n, &again, sentence) < 0)
		fail_msg("%s", sentence);
	assert_string_equal(again.gpus, "two_lines");
	assert_string_equal(again.made, "-");
	assert_int_equal(again.comms[0].n_channels, 12);
	assert_int_equal(again.comms[0].orders[0].ranks[1], 7);
	assert_memory_equal(again.comms[0].graphs, d.comms[0].graphs, sizeof(d.comms[0].graphs));
	assert_int_equal(again.comms[0].ops[NBOX_ALLREDUCE].n, 3);
	assert_memory_equal(again.comms[0].ops[NBOX_ALLREDUCE].points,
			    d.comms[0].ops[NBOX_ALLREDUCE].points,
			    3 * sizeof(struct decisions_point));
	free(text);
	decisions_deinit(&d);
	decisions_deinit(&again);
}

/* NCCL's numbers of PHB, PXN and P2C have moved. */
static void types_of_paths_are_those_of_their_version(void **state)
{
	enum { PXB = 5, P2C, PXN, PHB, SYS, NET, DIS };

	(void)state;
	assert_int_equal(decisions_path(22105, 2), 2);
	assert_int_equal(decisions_path(22105, 4), PXB);
	assert_int_equal(decisions_path(22105, 5), PXN);
	assert_int_equal(decisions_path(22105, 9), DIS);
	assert_int_equal(decisions_path(22602, 5), PXB);
	assert_int_equal(decisions_path(22602, 6), PXN);
	assert_int_equal(decisions_path(22602, 7), PHB);
	assert_int_equal(decisions_path(22703, 6), PXN);
	assert_int_equal(decisions_path(22703, 7), P2C);
	assert_int_equal(decisions_path(22809, 6), P2C);
	assert_int_equal(decisions_path(22809, 99), DIS);
}

/* --- the model ------------------------------------------------------------------------ */

/* The number of @algo in a file. */
static uint32_t file_algo(uint32_t algo)
{
	switch (algo) {
	case NBOX_TREE:
		return ALGO_TREE;
	case NBOX_NVLS:
		return ALGO_NVLS;
	case NBOX_NVLS_TREE:
		return ALGO_NVLS_TREE;
	case NBOX_PAT:
		return ALGO_PAT;
	default:
		return ALGO_RING;
	}
}

static uint64_t call_bytes(uint32_t kind, uint64_t size, uint32_t n_ranks)
{
	return kind == NBOX_ALLGATHER || kind == NBOX_REDUCESCATTER ? size / n_ranks : size;
}

/* As if NCCL were nbox's own rules: what they say at powers of two. */
static void write_own(struct delay_chain *own, const struct nbox_fabric *f, FILE *to)
{
	struct decisions_comm c = {.n_ranks = 8 * f->n_domains,
				   .n_nodes = f->n_domains,
				   .n_channels = DECISIONS_NOT_KNOWN,
				   .n_nvls_channels = DECISIONS_NOT_KNOWN,
				   .n_p2p_channels = DECISIONS_NOT_KNOWN,
				   .n_p2p_channels_per_peer = DECISIONS_NOT_KNOWN};
	struct decisions d = {.nccl = "2.28.9", .comms = &c, .n = 1};

	for (uint32_t kind = 0; kind < N_COSTED; kind++) {
		struct decisions_op *op = &c.ops[kind];

		op->points = calloc(40, sizeof(*op->points));
		for (uint64_t size = 1024; size <= UINT64_C(8) << 30; size *= 2) {
			struct decisions_point *pt = &op->points[op->n++];
			struct nbox_plan p =
				must_plan(own, f, kind, call_bytes(kind, size, c.n_ranks));

			pt->bytes = size;
			pt->algo = file_algo(p.algo);
			pt->proto = p.proto;
			pt->n_channels = DECISIONS_NOT_KNOWN;
			for (uint32_t a = 0; a < N_ALGOS; a++)
				for (uint32_t q = 0; q < N_PROTOS; q++)
					pt->us[a][q] = -1;
			for (uint32_t i = 0; i < p.n_candidates; i++)
				if (p.candidates[i].cost_ns >= 0)
					pt->us[file_algo(p.candidates[i].algo)]
					      [p.candidates[i].proto] =
						(float)(p.candidates[i].cost_ns / 1e3);
		}
	}
	decisions_write(&d, to);
	for (uint32_t kind = 0; kind < N_COSTED; kind++)
		free(c.ops[kind].points);
}

static void check_alike(struct delay_chain *own, struct delay_chain *told,
			const struct nbox_fabric *f, uint32_t kind, uint64_t bytes)
{
	struct nbox_plan a = must_plan(own, f, kind, bytes), b = must_plan(told, f, kind, bytes);

	assert_non_null(b.own_source);
	if (a.algo != b.algo || a.proto != b.proto)
		fail_msg("kind %u of %lu bytes on %u nodes: %u %u, by the file %u %u", kind,
			 (unsigned long)bytes, f->n_domains, a.algo, a.proto, b.algo, b.proto);
	assert_int_equal(a.n_lanes, b.n_lanes);
	assert_int_equal(a.n_threads, b.n_threads);
	assert_int_equal(a.chunk_bytes, b.chunk_bytes);
	assert_int_equal(b.own_algo, a.algo);
	assert_int_equal(b.own_proto, a.proto);
	assert_int_equal(b.own_lanes, a.n_lanes);
	test_near(b.estimate_ns, a.estimate_ns, 2e-5);
}

/* NCCL's cost between two sizes follows from theirs, plateau and the tree's shares included, and on
 * beyond the last and before the first. */
static void costs_between_sizes_are_those_of_the_rule(void **state)
{
	static const uint32_t nodes[] = {1, 2, 16, 64};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(nodes) / sizeof(nodes[0]); i++) {
		struct nbox_fabric f = dgx(i % 2 ? 90 : 80, nodes[i / 2]);
		CHAIN own = test_must_open("nccl", NULL, 0);
		char *text = NULL;
		size_t n;
		FILE *to = open_memstream(&text, &n);
		FIXTURE x;
		struct delay_chain *told;

		write_own(own, &f, to);
		fclose(to);
		fixture_write(&x, text, "");
		free(text);
		told = test_must_open(x.model, NULL, 0);
		for (uint32_t kind = 0; kind < N_COSTED; kind++)
			for (double size = 600; size < 2e10; size *= 1.187) {
				uint64_t bytes = call_bytes(kind, (uint64_t)size, 8 * f.n_domains);

				if (bytes)
					check_alike(own, told, &f, kind, bytes);
			}
		delay_free(told);
	}
}

/* Whatever costs a file has, the first of the cheapest is taken. */
static void at_its_sizes_the_file_decides(void **state)
{
	struct nbox_fabric f = dgx(90, 2);
	struct rng numbers;

	(void)state;
	rng_seed(&numbers, 1, 0);
	for (int turn = 0; turn < 200; turn++) {
		struct decisions_point points[2];
		struct decisions_comm c = {.n_ranks = 16,
					   .n_nodes = 2,
					   .n_channels = 16,
					   .n_nvls_channels = 16,
					   .n_p2p_channels = 16,
					   .n_p2p_channels_per_peer = 2,
					   .ops[NBOX_ALLREDUCE] = {points, 2}};
		struct decisions d = {.nccl = "2.28.9", .comms = &c, .n = 1};
		struct delay_chain *told;
		char *text = NULL;
		size_t n;
		FILE *to = open_memstream(&text, &n);
		FIXTURE x;

		for (int i = 0; i < 2; i++) {
			struct decisions_point *pt = &points[i];
			float least = 1e9f;

			*pt = (struct decisions_point){.bytes = 1000 + (uint64_t)i * 77777,
						       .n_channels = DECISIONS_NOT_KNOWN};
			for (uint32_t a = 0; a < N_ALGOS; a++)
				for (uint32_t q = 0; q < N_PROTOS; q++) {
					float us = (float)(rng_u64(&numbers) % 20) + 1;

					pt->us[a][q] = a <= ALGO_RING || (a == ALGO_NVLS_TREE &&
									  q == NBOX_SIMPLE)
							       ? us
							       : -1;
					if (pt->us[a][q] < 0 || us >= least)
						continue;
					least = us;
					pt->algo = a;
					pt->proto = q;
				}
		}
		decisions_write(&d, to);
		fclose(to);
		fixture_write(&x, text, "");
		free(text);
		told = test_must_open(x.model, NULL, 0);
		for (int i = 0; i < 2; i++) {
			struct nbox_plan p = must_plan(told, &f, NBOX_ALLREDUCE, points[i].bytes);

			assert_int_equal(file_algo(p.algo), points[i].algo);
			assert_int_equal(p.proto, points[i].proto);
			test_near(p.estimate_ns,
				  (double)points[i].us[points[i].algo][points[i].proto] * 1e3, 0);
		}
		delay_free(told);
	}
}

static void channels_and_graphs_are_those_of_the_file(void **state)
{
	struct nbox_fabric f = dgx(80, 2);
	struct nbox_plan p;
	FIXTURE x;
	CHAIN told = NULL;

	(void)state;
	fixture_write(&x, good, "");
	told = test_must_open(x.model, NULL, 0);
	p = must_plan(told, &f, NBOX_ALLREDUCE, 1 << 20);
	assert_int_equal(p.n_lanes, 3); /* as stated at that size */
	p = must_plan(told, &f, NBOX_ALLREDUCE, UINT64_C(64) << 20);
	assert_int_equal(p.n_lanes, 12);
	assert_non_null(strstr(p.source, "NCCL 2.28.9 itself, by "));
	assert_non_null(strstr(p.own_source, "NCCL 2.28.9, as the decision file"));
	/* the file has no AllGather: the rules, on its graphs: 6 x 24 GB/s x 16/15 of a ring */
	p = must_plan(told, &f, NBOX_ALLGATHER, UINT64_C(1) << 30);
	assert_int_equal(p.n_lanes, 12);
	test_near(p.estimate_ns, (double)(UINT64_C(16) << 30) / (6 * 30 * 16 / 15.0), 0.01);
	assert_null(p.own_source);
	assert_non_null(strstr(p.source, "; this is not in "));
	p = must_plan(told, &f, NBOX_ALLTOALL, 1 << 20); /* four channels a peer, two of 16 ranks */
	assert_int_equal(p.n_lanes, 4);
}

/* Beside what NCCL took the file's word stands. */
static void what_the_file_says_stands_beside_what_nccl_took(void **state)
{
	struct nbox_fabric f = dgx(80, 2);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 1 << 20);
	struct nbox_plan p, q;
	struct err err = {""};
	FIXTURE x;
	CHAIN told = NULL;

	(void)state;
	fixture_write(&x, good, ",algo=ring");
	told = test_must_open(x.model, NULL, 0);
	assert_non_null(strstr(delay_param_value(told, "decisions"), "/"));
	assert_null(delay_param_value(told, "tuner"));
	q = must_plan(told, &f, NBOX_ALLREDUCE, 1 << 20);
	op.algo = NBOX_ALGO_ANY;
	op.took_algo = NBOX_RING;
	op.took_proto = NBOX_LL;
	op.took_lanes = 1;
	assert_null(delay_told_by(told));
	assert_int_equal(delay_plan(told, &op, &f, &p, &err), 0);
	assert_true(p.is_taken && p.algo == NBOX_RING && p.proto == NBOX_LL && p.n_lanes == 1);
	assert_int_equal(p.told_algo, q.algo);
	assert_int_equal(p.told_proto, q.proto);
	assert_int_equal(p.told_lanes, q.n_lanes);
	assert_int_equal(p.told_of_comm, 12);
	assert_non_null(strstr(p.told_by, " (with algo=ring)"));
	assert_string_equal(delay_told_by(told), p.told_by);
	op.kind = NBOX_ALLGATHER; /* the file has none; its communicator it has */
	assert_int_equal(delay_plan(told, &op, &f, &p, &err), 0);
	assert_int_equal(p.told_lanes, 0);
	assert_int_equal(p.told_of_comm, 12);
	f.n_domains = op.n_nodes = 4;
	op.n_ranks = 32;
	assert_int_equal(delay_plan(told, &op, &f, &p, &err), 0);
	assert_int_equal(p.told_lanes + p.told_of_comm, 0);
}

static void other_communicators_are_decided_by_the_rules(void **state)
{
	struct nbox_fabric f = dgx(80, 4), uneven = dgx(80, 2);
	struct nbox_plan p, q;
	FIXTURE x;
	CHAIN told = NULL;
	CHAIN own = test_must_open("nccl", NULL, 0);

	(void)state;
	fixture_write(&x, good, "");
	told = test_must_open(x.model, NULL, 0);
	assert_non_null(strstr(delay_warning(told), "the decision file is of NCCL 2.28.9 and 16 "
						    "ranks on 2 nodes; nbox's own rules decide "
						    "for others"));
	p = must_plan(told, &f, NBOX_ALLREDUCE, 1 << 20);
	q = must_plan(own, &f, NBOX_ALLREDUCE, 1 << 20);
	assert_int_equal(p.algo, q.algo);
	assert_int_equal(p.n_lanes, q.n_lanes);
	assert_null(p.own_source);
	assert_non_null(strstr(p.source, "; this is not in "));
	uneven.ranks_per_domain = 0;
	uneven.most_ranks_per_domain = 8; /* of 16 ranks would be 8 + 8: these are others */
	{
		struct nbox_op op = test_op(NBOX_ALLREDUCE, 12, 2, 1 << 20);
		struct err err = {""};

		op.algo = NBOX_ALGO_ANY;
		assert_int_equal(delay_plan(told, &op, &uneven, &p, &err), 0);
		assert_null(p.own_source);
	}
}

static void parameters_and_variables_narrow_what_the_file_has(void **state)
{
	struct nbox_fabric f = dgx(80, 2);
	struct delay_chain *d = NULL;
	struct nbox_plan p;
	struct err err = {""};
	FIXTURE x;

	(void)state;
	fixture_write(&x, good, ",algo=tree,channels=2");
	d = test_must_open(x.model, NULL, 0);
	p = must_plan(d, &f, NBOX_ALLREDUCE, 4 << 20);
	assert_int_equal(p.algo, NBOX_TREE);
	assert_int_equal(p.n_lanes, 2);
	assert_non_null(strstr(p.source, ", algo=tree, channels=2"));
	d = delay_free(d);
	fixture_deinit(&x);

	fixture_write(&x, good, "");
	setenv("NCCL_MAX_NCHANNELS", "2", 1);
	setenv("NCCL_ALGO", "^ring", 1);
	d = test_must_open(x.model, NULL, 0);
	unsetenv("NCCL_MAX_NCHANNELS");
	unsetenv("NCCL_ALGO");
	p = must_plan(d, &f, NBOX_ALLREDUCE, 1 << 20);
	assert_int_equal(p.algo, NBOX_TREE);
	assert_int_equal(p.n_lanes, 2);
	d = delay_free(d);
	fixture_deinit(&x);

	fixture_write(&x, good, ",proto=simple");
	d = test_must_open(x.model, NULL, 0);
	assert_int_equal(try_plan(d, &f, NBOX_ALLREDUCE, 8, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no algorithm and protocol left"));
	d = delay_free(d);
	fixture_deinit(&x);

	fixture_write(&x, good, ",version=2.21.5");
	assert_true(test_open(x.model, NULL, 0, &d, &err) < 0);
	assert_non_null(
		strstr(err.text, "version=2.21.5, but the decision file is of NCCL 2.28.9"));
	fixture_deinit(&x);

	fixture_write(&x, good, ",version=2.28.9");
	d = test_must_open(x.model, NULL, 0);
	d = delay_free(d);
	fixture_deinit(&x);

	fixture_write(&x, "nonsense\n", "");
	assert_true(test_open(x.model, NULL, 0, &d, &err) < 0);
	assert_non_null(strstr(err.text, ":1: 'nonsense' is neither"));
}

static void a_job_with_another_nccl_is_warned(void **state)
{
	static const char texts[] = "2.27.7\0NCCL_CROSS_NIC=0";
	struct nbox_fabric f = dgx(80, 2);
	struct nbox_plan p;
	struct err err = {""};
	FIXTURE x;
	CHAIN d = NULL;

	(void)state;
	fixture_write(&x, good, "");
	d = test_must_open(x.model, NULL, 0);
	assert_int_equal(delay_set_job(d, &(struct delay_job){texts, sizeof(texts)}, &err), 0);
	assert_non_null(strstr(delay_warning(d),
			       "; the job's is NCCL 2.27.7, which may decide otherwise. "
			       "NCCL_CROSS_NIC=0: not modelled"));
	p = must_plan(d, &f, NBOX_ALLREDUCE, 8); /* what the file has stays the file's */
	assert_non_null(strstr(p.source, "NCCL 2.28.9 itself, by "));
	assert_non_null(strstr(p.own_source, "NCCL 2.27.7, the job's"));
}

static void what_nbox_cannot_play_is_refused(void **state)
{
	static const struct {
		const char *cost, *says;
	} files[] = {
		{"[cost allreduce]\nat 8 = nvls/simple - of nvls/simple 1\n"
		 "at 16 = nvls/simple - of nvls/simple 1\n",
		 "NCCL takes CollNet, of whose times nbox knows nothing"},
		{"[cost allreduce]\nat 8 = nvlstree/simple - of nvlstree/simple 1\n"
		 "at 16 = nvlstree/simple - of nvlstree/simple 1\n",
		 "NVLS, and this fabric has no switch that reduces"},
		{"[cost broadcast]\nat 8 = tree/simple - of tree/simple 1\n"
		 "at 16 = tree/simple - of tree/simple 1\n",
		 "an algorithm and protocol that nbox does not know"},
	};
	struct nbox_fabric f = dgx(80, 2);

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char text[sizeof(good) + 200];
		int head = (int)(strstr(good, "[cost") - good);
		struct nbox_plan p;
		struct err err = {""};
		FIXTURE x;
		CHAIN d = NULL;

		snprintf(text, sizeof(text), "%.*s%s", head, good, files[i].cost);
		fixture_write(&x, text, "");
		d = test_must_open(x.model, NULL, 0);
		assert_int_equal(try_plan(d, &f, i == 2 ? NBOX_BROADCAST : NBOX_ALLREDUCE, 8, &p,
					  &err),
				 -EINVAL);
		if (!strstr(err.text, files[i].says))
			fail_msg("'%s' does not say '%s'", err.text, files[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_gets_its_line_and_a_remedy),
		cmocka_unit_test(what_stands_twice_or_alone_is_refused),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(types_of_paths_are_those_of_their_version),
		cmocka_unit_test(costs_between_sizes_are_those_of_the_rule),
		cmocka_unit_test(at_its_sizes_the_file_decides),
		cmocka_unit_test(channels_and_graphs_are_those_of_the_file),
		cmocka_unit_test(what_the_file_says_stands_beside_what_nccl_took),
		cmocka_unit_test(other_communicators_are_decided_by_the_rules),
		cmocka_unit_test(parameters_and_variables_narrow_what_the_file_has),
		cmocka_unit_test(a_job_with_another_nccl_is_warned),
		cmocka_unit_test(what_nbox_cannot_play_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
