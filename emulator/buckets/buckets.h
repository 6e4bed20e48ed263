/* Which gradients of a backward pass are reduced together: tensor fusion and partition, and op
 * fusion, as dPRO decides them (Hu et al., MLSys 2022, section 5), the best there is, and what
 * frameworks do by themselves.
 *
 * Gradient n becomes ready at p_n. Gradients that follow each other are a bucket; it is reduced
 * when its last one is ready, and some time after the bucket before it is done:
 *
 *     q_n = max(p_n, q_(n-1) + lead_n) + t(bytes, pieces)
 *
 * The iteration goes on when computation has come to its end, and the last bucket is done. Where
 * computation does something with each gradient behind the wait, such as a copy, it does so in
 * their order, each behind its bucket. Times are nanoseconds, or any other unit: nothing here
 * counts in them. No I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How long a bucket takes to be reduced, in so many pieces of equal size. NAN: it is not known, and
 * @ctx knows why; then the results here are NAN, too. */
struct buckets_cost {
	double (*sync)(void *ctx, uint64_t bytes, uint32_t pieces);
	void *ctx;
	uint32_t most_pieces; /* that are tried; 1: a bucket is one op */
};

/* Borrowed. */
struct buckets_job {
	uint32_t n;
	const double *ready; /* of each gradient, never falling */
	const uint64_t *bytes;
	const double *fused; /* how long the op of gradient n and the one before it take as one op;
				NAN: not known; NULL: none are */
	double end;          /* when computation waits for all of them */
	double begin;        /* of the backward pass */
	const double *after; /* what computation does with each behind the wait; NULL: nothing */
	const double *lead;  /* of a bucket that ends with it; NULL: none has any */
};

struct bucket {
	uint32_t first, end; /* gradients [first, end) */
	uint32_t pieces;
	double from; /* it does not begin before */
};

struct buckets_plan {
	struct bucket *list; /* owned; room for one a gradient */
	uint32_t n;
	bool *is_fused; /* owned; by gradient: its op is one with the op before it */
	uint32_t n_fused;
};

/* For jobs of @n gradients. Return: 0; -ENOMEM. */
int buckets_plan_init(struct buckets_plan *p, uint32_t n);
void buckets_plan_deinit(struct buckets_plan *p);

/* Return: when the iteration goes on. @ends: of each bucket; NULL: not wanted. */
double buckets_play(const struct buckets_job *job, const struct buckets_cost *cost,
		    const struct buckets_plan *p, double *ends);
/* What it takes at best, in 1 to most_pieces pieces; @ret_pieces of them. */
double buckets_sync(const struct buckets_cost *cost, uint64_t bytes, uint32_t *ret_pieces);

/* --- dPRO's theorems ----------------------------------------------------------------------------
 */

/* Theorem 1, of ops that take @p_before and @p, or @fused as one, where communication has no
 * backlog and @q_before, the reduction of the first one's gradient, takes no longer than @p: are
 * they better one op? As Algorithm 1 has it; the theorem's line prints p_before twice. */
bool buckets_fuses_ops(double q_before, double p_before, double p, double fused);
/* Theorem 2, of a gradient that is ready at @p_end while the reduction before it ends at
 * @q_before_end: is it over earlier as a part of that? @t_fused: of both together; @t: of the
 * gradient alone. As Algorithm 1 has it; as printed (p and t of the one before) it is wrong. */
bool buckets_fuses_tensors(double q_before_end, double p_end, double t_fused, double t);

/* --- plans: all fill @p, which buckets_plan_init() made ------------------------------------------
 */

/* What Algorithm 1 asked and answered of one gradient. */
struct buckets_decision {
	uint32_t gradient;
	double q_before, p; /* ends */
	double t_fused, t;
	bool fuses, fuses_ops;
};

/**
 * buckets_dpro - Algorithm 1's pass, from the first gradient to the last
 * @log: room for a decision a gradient; NULL: not wanted
 *
 * It knows of no lead.
 * By Theorem 2 each gradient joins the bucket before it, or begins one. Ops are fused where their
 * times are known, and Theorem 1 or 2 says so (3: both are never worse than one). Return: as
 * buckets_play().
 */
double buckets_dpro(const struct buckets_job *job, const struct buckets_cost *cost,
		    struct buckets_plan *p, struct buckets_decision *log);
/* The best buckets there are, of ops as they are: E(j) = min over i < j of max(p_j, E(i)) + t(i+1
 * to j), which is exact since max and + never fall. O(n^2 log n). With after there are several
 * E(j), of which none is better in both: when the last bucket is done, and what all of them leave
 * to do. Return: as above; NAN: no memory, too. */
double buckets_best(const struct buckets_job *job, const struct buckets_cost *cost,
		    struct buckets_plan *p);

void buckets_none(const struct buckets_job *job, struct buckets_plan *p); /* each alone */
void buckets_one(const struct buckets_job *job, struct buckets_plan *p);
/* Full with the gradient that reaches the limit, as PyTorch's DistributedDataParallel and the
 * stepper have it. @first: of the first bucket; 25 MiB, and 1 MiB, where nobody says otherwise. */
void buckets_ddp(const struct buckets_job *job, uint64_t first, uint64_t most,
		 struct buckets_plan *p);
/* Each @cycle what has become ready, in buffers of @most bytes: Horovod, by default 5 ms and 64
 * MiB. Its first cycle ends @cycle after the beginning. */
void buckets_horovod(const struct buckets_job *job, double cycle, uint64_t most,
		     struct buckets_plan *p);
/* No fusion, pieces of at most @most bytes: BytePS, 4,096,000. */
void buckets_byteps(const struct buckets_job *job, uint64_t most, struct buckets_plan *p);

/* The limit of DDP that does best, of a grid from 256 KiB to 512 MiB. @is_first: the first
 * bucket's, the others' is 25 MiB; else all buckets'. What is 0.1 % better counts, else 1 and 25
 * MiB stay. Return: as buckets_play(). */
double buckets_ddp_best(const struct buckets_job *job, const struct buckets_cost *cost,
			bool is_first, struct buckets_plan *p, uint64_t *ret_limit);
/* The same of Horovod's, as its autotuning looks for them: 1 to 100 times @unit, 1 to 64 MiB. */
double buckets_horovod_best(const struct buckets_job *job, const struct buckets_cost *cost,
			    double unit, struct buckets_plan *p, double *ret_cycle,
			    uint64_t *ret_most);
