/* What it costs the progress thread to look at gates on CUDA when none moves: cuda_gate_poll()
 * over gates that captured graphs hold, on an emulated driver. Medians of batches.
 *
 * usage: bench-cuda-gate [--json FILE] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/gate/cuda-gate.h"
#include "shim/gate/device-cuda.h"
#include "tests/driver/emulated-driver.h"

enum { BATCHES = 31, LOOKS = 1000, MOST = 16384 };

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_ns(void)
{
	double ns[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		uint64_t start = clock_now_ns();

		for (int k = 0; k < LOOKS; k++)
			if (cuda_gate_poll())
				exit(1);
		ns[i] = (double)(clock_now_ns() - start) / LOOKS;
	}
	qsort(ns, BATCHES, sizeof(ns[0]), by_value);
	return ns[BATCHES / 2];
}

int main(int argc, char **argv)
{
	FILE *json = argc > 2 && !strcmp(argv[1], "--json") ? fopen(argv[2], "w") : NULL;
	struct gate *gates = calloc(MOST, sizeof(*gates));
	struct err err;
	uint32_t n = 0;

	if (!gates || emulated_open(&err) || device_cuda_use(&emulated_driver, &err) ||
	    device_cuda.set(0))
		return 1;
	printf("%-14s %16s\n", "gates in graphs", "one look, ns");
	for (uint32_t want = 1; want <= MOST; want *= 16) {
		for (; n < want; n++) {
			gates[n].is_captured = true;
			if (device_cuda.arrive(emulated_stream(0), &gates[n]) ||
			    device_cuda.wait(emulated_stream(0), &gates[n]))
				return 1;
		}
		double ns = median_ns();

		printf("%-14u %16.0f\n", n, ns);
		if (json)
			fprintf(json, "%s{\"gates\": %u, \"look_ns\": %.1f}",
				want == 1 ? "[" : ", ", n, ns);
		if (want == 4096)
			want = MOST / 16;
	}
	if (json) {
		fputs("]\n", json);
		fclose(json);
	}
	return 0;
}
