/* A decision file on any bytes: an error names the file; what is accepted is the same when it is
 * written and read again, and gives decisions that a plan can be made of. */
#include "fuzz.h"

#include "nccl/choice.h"

static char *write_out(const struct decisions *d)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	REQUIRE(to);
	decisions_write(d, to);
	fclose(to);
	return text;
}

static void decide(const struct decisions *d)
{
	const struct decisions_comm *told = &d->comms[0];
	uint32_t each = told->n_ranks / told->n_nodes;
	const struct nbox_fabric fabric = {
		.struct_size = sizeof(fabric),
		.n_domains = told->n_nodes,
		.ranks_per_domain = each,
		.most_ranks_per_domain = each,
		.sm_min = 90,
		.sm_max = 90,
		.has_nvls = 1,
		.has_gdr = 1,
		.n_nics = 8,
		.gpu_bytes_per_ns = 450,
		.nic_bytes_per_ns = 50,
	};
	struct setting s = {
		.tables = tables_find(""),
		.max_channels = 64,
		.max_ctas = 64,
		.buffer_bytes = {512 << 10, 4915200, 4 << 20},
		.thresholds = {{-1, -1, -1}, {-1, -1, -1}},
	};
	const struct tuner none = {NULL, 0};
	struct choice ch;
	struct comm c;

	memset(s.algo, ALLOWED_YES, sizeof(s.algo));
	memset(s.proto, ALLOWED_YES, sizeof(s.proto));
	comm_make(&s, &fabric, told->n_ranks, &c);
	decided_apply(d, &c);
	REQUIRE(c.told == told);
	for (uint32_t kind = 0; kind < N_COSTED; kind++)
		for (int shift = 0; decided_op(&c, kind) && shift < 40; shift += 3) {
			if (choice_make(&c, &none, kind, UINT64_C(7) << shift, &ch) < 0)
				continue;
			REQUIRE(ch.cost_us >= 0);
			REQUIRE(ch.n_channels >= 1 && ch.n_channels <= 64);
			REQUIRE(ch.chunk_bytes >= 1);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char sentence[DECISIONS_SENTENCE], shapes[64], *text, *twice;
	struct decisions d, again;

	if (decisions_parse("file", (const char *)data, size, &d, sentence) < 0) {
		REQUIRE(strncmp(sentence, "file:", 5) == 0);
		return 0;
	}
	REQUIRE(strlen(decisions_shapes(&d, shapes, sizeof(shapes))) < sizeof(shapes));
	decide(&d);
	text = write_out(&d);
	REQUIRE(decisions_parse("again", text, strlen(text), &again, sentence) == 0);
	twice = write_out(&again);
	REQUIRE(strcmp(text, twice) == 0);
	free(twice);
	free(text);
	decisions_deinit(&again);
	decisions_deinit(&d);
	return 0;
}
