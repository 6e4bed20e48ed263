/* What the nccl scheduler reads: the table of a tuner, and the variables of a job's environment.
 * The first line says which: "tuner", or "job"; then the file, or lines NAME=value. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../delaymodels/nccl/choice.h"
#include "../../delaymodels/nccl/tuner.h"

static char sentence[1024], *lines[64];

static void __attribute__((format(printf, 2, 3)))
fake_error(const struct nbox_host *host, const char *fmt, ...)
{
	va_list ap;

	(void)host;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
}

static const char *fake_variable(const struct nbox_host *host, const char *name)
{
	size_t n = strlen(name);

	(void)host;
	for (size_t i = 0; lines[i]; i++)
		if (strncmp(lines[i], name, n) == 0 && lines[i][n] == '=')
			return lines[i] + n + 1;
	return NULL;
}

static int fake_count(const struct nbox_host *h, const char *key, const char *v, uint64_t *ret)
{
	(void)h;
	(void)key;
	(void)v;
	(void)ret;
	return 0;
}

static const struct nbox_host host = {
	.struct_size = sizeof(host),
	.error = fake_error,
	.parse_count = fake_count,
	.variable = fake_variable,
	.nccl_version = "",
};

static const struct nbox_fabric fabric = {
	.struct_size = sizeof(fabric),
	.n_domains = 16,
	.ranks_per_domain = 8,
	.most_ranks_per_domain = 8,
	.sm_min = 90,
	.sm_max = 90,
	.has_nvls = 1,
	.has_gdr = 1,
	.n_nics = 8,
	.gpu_bytes_per_ns = 450,
	.nic_bytes_per_ns = 50,
};

/* Decisions by what was read hold what a plan needs. */
static void decide(const struct setting *s, const struct tuner *t)
{
	struct choice ch;
	struct comm c;

	comm_make(s, &fabric, 128, &c);
	for (uint32_t kind = 0; kind < N_COSTED; kind++)
		for (int shift = 0; shift < 40; shift += 3)
			if (choice_make(&c, t, kind, UINT64_C(128) << shift, &ch) == 0)
				REQUIRE(ch.n_channels >= 1 && ch.n_channels <= 64 &&
					ch.chunk_bytes >= 1 && ch.lane_bytes >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct setting setting;
	struct tuner tuner = {NULL, 0};
	char *text = malloc(size + 1), *save = NULL, *line;
	size_t n = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	sentence[0] = '\0';
	lines[0] = NULL;
	REQUIRE(setting_read(&host, NULL, 0, NULL, &setting) == 0);
	if (size > 6 && memcmp(text, "tuner\n", 6) == 0) {
		if (tuner_parse(&host, "file", text + 6, size - 6, &tuner) == 0)
			decide(&setting, &tuner);
		else
			REQUIRE(strncmp(sentence, "file:", 5) == 0);
		tuner_deinit(&tuner);
	} else {
		for (line = strtok_r(text, "\n", &save); line && n < 63;
		     line = strtok_r(NULL, "\n", &save))
			lines[n++] = line;
		lines[n] = NULL;
		if (setting_read(&host, NULL, 0, NULL, &setting) == 0)
			decide(&setting, &tuner);
		else
			REQUIRE(strncmp(sentence, "NCCL_", 5) == 0);
	}
	free(text);
	return 0;
}
