/* A job that makes, uses and ends communicators at random, for as long as one likes.
 *
 *   main.c     options, laps, threads
 *   step.c     what a lane does next
 *   comms.c    ways to a communicator, and its ends
 *   use.c      collectives, groups, graphs, sends and receives; what they must give
 *   watch.c    which call each thread is in, and when that is too long
 *   census.c   descriptors, threads and memory of the process
 *
 * A process drives one or more real ranks; each rank has the same number of lanes, and each
 * lane is a thread with communicators of its own. The lanes of one number draw the same plan
 * from the same seed on every rank, since NCCL wants its calls in the same order everywhere.
 * What may differ between ranks (how long each waits) is drawn from the rank's own luck. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#define MAX_REAL 8
#define MAX_LANES 4
#define MAX_COMMS 8
#define N_SLOTS 4
#define SLOT_FLOATS (1u << 16)
#define N_STREAMS 2

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *r);
/* Return: 0 to @n - 1. */
uint32_t rng_below(struct rng *r, uint32_t n);
struct rng rng_new(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

/* What the command line says. */
struct job {
	uint64_t seed;
	int n, k, real[MAX_REAL];   /* the world, its real ranks */
	int mine[MAX_REAL], n_mine; /* indices of those that this process drives */
	int n_lanes, n_laps, n_steps, gpus_per_node;
	bool is_plain; /* no nbox: all ranks are real */
	bool is_exact; /* contents are known */
	bool may_fork;
	const char *dir;     /* unique ids go from rank to rank by files in it */
	const char *without; /* steps that are left out: a,b,c */
	const char *only;    /* NULL, or the only steps taken */
	double bound_s;
};

extern struct job job;

/* A communicator as one rank sees it. Ranks that are not in it keep its place, with no handle. */
struct comm {
	ncclComm_t handle;
	uint32_t serial;
	int n, rank;
	uint32_t reals; /* bit i: real rank number i is a member */
	bool is_world;  /* its ranks are the world's, in the world's order */
	bool is_blocking;
};

struct slot {
	float *send, *recv; /* of the device */
	float *host;
};

struct lane {
	int index; /* of the real rank */
	int me;    /* the real rank */
	int number, lap, step;
	const char *doing;
	struct rng plan, luck;
	cudaStream_t streams[N_STREAMS];
	struct slot slots[N_SLOTS];
	struct comm comms[MAX_COMMS]; /* the first lives as long as the lap */
	int n_comms;
	uint32_t serial; /* of the next communicator */
	pthread_t thread;
	struct watch *watch;
};

/* The real rank whose place @v has in the world: itself, or that of its template. */
int template_of(int v);

/* Says what went wrong, where, and ends the process with 1. */
void die(const struct lane *l, const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 4, 5)));
#define DIE(l, ...) die(l, __FILE__, __LINE__, __VA_ARGS__)

/* --- watch.c ---------------------------------------------------------------------------- */
void watch_start(void);
struct watch *watch_new(const struct lane *l);
void watch_free(struct watch *w);
void watch_enter(struct watch *w, const char *call, int step);
void watch_leave(struct watch *w);
/* Seconds that this process could have run, had it wanted to: wall clock less what it, its
 * peers and nboxd waited for a core. */
double watch_now_s(void);

/* Evaluates a call that must return within the bound. */
#define WATCHED(l, call)                                   \
	({                                                 \
		watch_enter((l)->watch, #call, (l)->step); \
		__typeof__(call) watched_ = (call);        \
		watch_leave((l)->watch);                   \
		watched_;                                  \
	})
#define NCCL(l, call)                                                        \
	do {                                                                 \
		ncclResult_t r_ = WATCHED(l, call);                          \
		if (r_)                                                      \
			DIE(l, "%s: %s (%s)", #call, ncclGetErrorString(r_), \
			    ncclGetLastError(NULL));                         \
	} while (0)
#define CUDA(l, call)                                                    \
	do {                                                             \
		cudaError_t r_ = WATCHED(l, call);                       \
		if (r_)                                                  \
			DIE(l, "%s: %s", #call, cudaGetErrorString(r_)); \
	} while (0)
/* Waits, without being in a call, until @cond; for no longer than the bound. */
#define WAIT_UNTIL(l, cond)                                \
	do {                                               \
		watch_enter((l)->watch, #cond, (l)->step); \
		while (!(cond))                            \
			nap_us(200);                       \
		watch_leave((l)->watch);                   \
	} while (0)
void nap_us(uint32_t us);
/* Waits for a time that differs from rank to rank. */
void dawdle(struct lane *l);

/* --- comms.c ---------------------------------------------------------------------------- */
void comm_base(struct lane *l);
bool comm_is_member(const struct lane *l, const struct comm *c);
/* Any communicator, for use: those that a plan may end are all but the first. */
struct comm *comm_any(struct lane *l);
void comm_destroy(struct lane *l, struct comm *c);
void comms_end(struct lane *l);
/* All real ranks of this lane have come here. */
void barrier(struct lane *l);

void step_init(struct lane *l);
void step_init_nonblocking(struct lane *l);
void step_init_group(struct lane *l);
void step_scalable(struct lane *l);
void step_split(struct lane *l);
void step_split_without(struct lane *l);
void step_shrink(struct lane *l);
void step_destroy(struct lane *l);
void step_finalize(struct lane *l);
void step_abort_idle(struct lane *l);
void step_abort_in_op(struct lane *l);
void step_abort_beside_destroy(struct lane *l);
void step_abort_in_init(struct lane *l);
void step_revoke(struct lane *l);

/* --- use.c ------------------------------------------------------------------------------ */
void step_collective(struct lane *l);
void step_empty(struct lane *l);
void step_group(struct lane *l);
void step_big_group(struct lane *l);
void step_streams(struct lane *l);
void step_redop(struct lane *l);
void step_redop_in_group(struct lane *l);
void step_ring(struct lane *l);
void step_all_to_all(struct lane *l);
void step_pair(struct lane *l);
void step_graph(struct lane *l);
void step_fork(struct lane *l);
void step_fork_destroy(struct lane *l);
/* Sums ones: the communicator works. */
void use_check(struct lane *l, struct comm *c);

/* --- step.c ----------------------------------------------------------------------------- */
/* Return: false when @name is no step. */
bool step_is_known(const char *name);
void step_run(struct lane *l);

/* --- census.c --------------------------------------------------------------------------- */
struct census {
	long fds, threads, maps; /* maps: of files and shared memory */
	long heap_bytes, resident_bytes;
};

void census_take(struct census *ret);
/* Waits until the process has no more of anything than @base, and memory does not go on growing
 * since
 * @last, for no longer than the bound. Exits with 1 and a list when it has. *last: as it is now. */
void census_compare(const struct census *base, struct census *last, const char *when);
