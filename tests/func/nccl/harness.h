/* Runs n ranks of a communicator as forked processes. Each runs a function, which returns 0 when
 * all is well. The harness fails when one of them fails or hangs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

struct shared { /* among all ranks */
	ncclUniqueId ids[16];
	_Atomic int id_ready[16];
	_Atomic int flag[64];
	int pid[64];
};

struct rank {
	int rank, n;
	struct shared *shared;
	void *arg;
};

typedef int (*rank_fn)(struct rank *r);

/* Return: how many ranks failed. @killed: this rank may die; -1: none. */
int run_ranks(int n, rank_fn fn, void *arg, int killed, int timeout_s);

/* Communicator number @k of all ranks; aborts the test's process on failure. */
ncclComm_t make_comm(struct rank *r, int k);
void wait_flag(struct rank *r, int i, int value);
/* Until the async error is @want, @ms at most. */
bool wait_async(ncclComm_t comm, ncclResult_t want, int ms);
double now_s(void);

#define CHECK(x)                                                                \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			return 1;                                               \
		}                                                               \
	} while (0)
#define NCCL(x)                                                                        \
	do {                                                                           \
		ncclResult_t r_ = (x);                                                 \
		if (r_) {                                                              \
			fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #x, \
				ncclGetErrorString(r_), ncclGetLastError(NULL));       \
			return 1;                                                      \
		}                                                                      \
	} while (0)
#define CUDA(x)                                                                    \
	do {                                                                       \
		cudaError_t e_ = (x);                                              \
		if (e_) {                                                          \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, \
				cudaGetErrorString(e_));                           \
			return 1;                                                  \
		}                                                                  \
	} while (0)
