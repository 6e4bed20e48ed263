/* What the jobs of these tests share: a program that knows nothing of nbox, and what it
 * may expect. Every call of NCCL must leave errno and the signal mask alone. */
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_REAL 64

static int n, k, me, real[MAX_REAL]; /* the world, its real ranks, ours */

#define DIE(fmt, ...)                                                                          \
	do {                                                                                   \
		fprintf(stderr, "%d: rank %d of %d: " fmt "\n", __LINE__, me, n, __VA_ARGS__); \
		exit(1);                                                                       \
	} while (0)
/* @r: evaluated between the two looks. */
#define NCCL_IS_QUIET(r)                                                               \
	({                                                                             \
		sigset_t before_, after_;                                              \
		ncclResult_t is_quiet_;                                                \
		pthread_sigmask(SIG_SETMASK, NULL, &before_);                          \
		errno = EXDEV;                                                         \
		is_quiet_ = (r);                                                       \
		if (errno != EXDEV)                                                    \
			DIE("%s changed errno", #r);                                   \
		pthread_sigmask(SIG_SETMASK, NULL, &after_);                           \
		for (int sig_ = 1; sig_ < NSIG; sig_++)                                \
			if (sigismember(&before_, sig_) != sigismember(&after_, sig_)) \
				DIE("%s changed the mask", #r);                        \
		is_quiet_;                                                             \
	})
#define NCCL_FAILS(call, how)                                                           \
	do {                                                                            \
		ncclResult_t r_ = NCCL_IS_QUIET(call);                                  \
		if (r_ != (how))                                                        \
			DIE("%s: %s, not %s (%s)", #call, ncclGetErrorString(r_), #how, \
			    ncclGetLastError(NULL));                                    \
	} while (0)
#define NCCL(call) NCCL_FAILS(call, ncclSuccess)
#define CUDA(call)                                                    \
	do {                                                          \
		cudaError_t r_ = (call);                              \
		if (r_ != cudaSuccess)                                \
			DIE("%s: %s", #call, cudaGetErrorString(r_)); \
	} while (0)
#define CHECK(cond, fmt, ...)                                  \
	do {                                                   \
		if (!(cond))                                   \
			DIE("%s: " fmt, #cond, ##__VA_ARGS__); \
	} while (0)

/* The real rank whose place @v has: itself, or that of its template (topology/template.h). */
static inline int template_of(int v)
{
	int gpus = atoi(getenv("GPUS_PER_NODE") ?: "8"), alike[MAX_REAL], n_alike = 0;

	for (int i = 0; i < k; i++) {
		if (real[i] == v)
			return v;
		if (real[i] % gpus == v % gpus)
			alike[n_alike++] = real[i];
	}
	return n_alike ? alike[v / gpus % n_alike] : real[v % k];
}

static inline int is_real(int v)
{
	return template_of(v) == v;
}

/* WORLD REAL,REAL,... and RANK. */
static inline void job_start(char **argv)
{
	n = atoi(argv[1]);
	for (char *p = argv[2]; *p && k < MAX_REAL; p += *p == ',')
		real[k++] = (int)strtol(p, &p, 10);
	me = atoi(getenv("RANK"));
}

static inline ncclUniqueId id_of(const char *text)
{
	ncclUniqueId id;

	memset(&id, 0, sizeof(id));
	snprintf(id.internal, sizeof(id.internal), "%s", text);
	return id;
}

/* Of a communicator that is not blocking. */
static inline void wait_until_ready(ncclComm_t comm)
{
	ncclResult_t state;

	NCCL(ncclCommGetAsyncError(comm, &state));
	while (state == ncclInProgress) {
		usleep(100); /* the ranks that it waits for need the core */
		NCCL(ncclCommGetAsyncError(comm, &state));
	}
	CHECK(state == ncclSuccess, "state %d: %s", (int)state, ncclGetLastError(comm));
}
