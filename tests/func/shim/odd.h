/* For programs of parts, each of which makes its communicators: PROGRAM WORLD REAL,REAL,... part
 * ...; RANK says who we are. */
#pragma once

#include <unistd.h>

#include "job.h"

#define COUNT 100

static cudaStream_t stream;
static float *buf[3]; /* device memory of COUNT elements */

static inline ncclComm_t comm_new(const char *name)
{
	ncclComm_t comm;

	NCCL(ncclCommInitRank(&comm, n, id_of(name), me));
	return comm;
}

static inline void put(float *at, float value)
{
	float values[COUNT];

	for (int i = 0; i < COUNT; i++)
		values[i] = value;
	CUDA(cudaMemcpyAsync(at, values, sizeof(values), cudaMemcpyHostToDevice, stream));
	CUDA(cudaStreamSynchronize(stream));
}

static inline void check(const char *what, const float *at, float want)
{
	float values[COUNT];

	CUDA(cudaMemcpyAsync(values, at, sizeof(values), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		CHECK(values[i] == want, "%s: element %d is %g, not %g", what, i, (double)values[i],
		      (double)want);
}

static inline void check_works(ncclComm_t comm)
{
	int size;

	NCCL(ncclCommCount(comm, &size));
	put(buf[0], 1);
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclSum, comm, stream));
	check("a sum of ones", buf[0], (float)size);
}

struct part {
	const char *name;
	void (*run)(void);
};

/* Runs the parts that @argv names; the list ends with a part without a name. Return: main()'s. */
static inline int run_parts(int argc, char **argv, const struct part *parts)
{
	if (argc < 3)
		return 2;
	job_start(argv);
	CUDA(cudaStreamCreate(&stream));
	for (int i = 0; i < 3; i++)
		CUDA(cudaMalloc((void **)&buf[i], COUNT * sizeof(float)));
	for (int i = 3; i < argc; i++) {
		const struct part *p = parts;

		while (p->name && strcmp(p->name, argv[i]) != 0)
			p++;
		if (!p->name)
			return 2;
		p->run();
	}
	for (int i = 0; i < 3; i++)
		CUDA(cudaFree(buf[i]));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
