/* nbox doctor: how fast one core adds what a rank receives to its own, for --reduce-bandwidth.
 * Memory is used as a rank of host NCCL uses it: a message lies in a slot where it has just
 * arrived, and input and output are larger than the caches. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nbox/doctor/doctor.h"

#define BLOCK ((size_t)1 << 20) /* the default chunk */
#define BUFFER ((size_t)64 << 20)
#define SLOTS 8
#define BLOCKS 128 /* twice the buffer: the second half is measured */

typedef float lanes __attribute__((vector_size(32), may_alias));

static void add(void *sum, const void *received, const void *own)
{
	lanes *to = sum;
	const lanes *a = received, *b = own;

	for (size_t i = 0; i < BLOCK / sizeof(*to); i++)
		to[i] = a[i] + b[i];
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void doctor_reduce(struct doctor *d)
{
	CLEANUP(freep) char *memory = aligned_alloc(4096, 2 * BUFFER + SLOTS * BLOCK);
	uint64_t ns[BLOCKS], start_ns;
	char *input = memory, *output = memory + BUFFER, *slots = output + BUFFER;
	double rate;
	json_t *f;

	if (!memory)
		return;
	memset(memory, 0, 2 * BUFFER);
	for (size_t i = 0; i < BLOCKS; i++) {
		char *slot = slots + i % SLOTS * BLOCK;
		size_t at = i * BLOCK % BUFFER;

		memset(slot, 0, BLOCK);
		start_ns = clock_now_ns();
		add(output + at, slot, input + at);
		ns[i] = clock_now_ns() - start_ns;
	}
	qsort(ns + BLOCKS / 2, BLOCKS / 2, sizeof(*ns), by_value);
	rate = (double)BLOCK / (double)ns[BLOCKS * 3 / 4];
	f = doctor_add(
		d, DOCTOR_OK, "reductions", "float sum",
		"%.3g GB/s on one core (blocks of 1 MiB): --reduce-bandwidth %.3gGB/s, if the "
		"cluster's ranks reduce on such cores",
		rate, rate);
	if (f)
		json_object_set_new(f, "gbytes_per_s", json_real(rate));
}
