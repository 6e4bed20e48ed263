/* The delay models of a run: one model and the what-ifs (decorators) around it. They are plug-ins.
 * An answer that is not a number, negative or infinite is an error that names the model. Not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/delay-job.h"
#include "nbox-delaymodel.h"
#include "scenario/target.h"
#include "scenario/when.h"
#include "topology/topology.h"

struct delay_chain;

/**
 * delay_open - loads a model and its what-ifs
 * @model: "name" or "name:key=value,key=value", or a path ending in .so before
 *         the colon
 * @links: what messages cost on their path, where @model plans ops (plan()); NULL: "alphabeta".
 *         Another model takes none
 * @what_ifs: the same for decorators, innermost first
 * @world: the virtual cluster, whose ranks and nodes what-ifs may name
 * @dirs: NULL-terminated list of folders with plug-ins; NBOX_MODEL_PATH (colon
 *        separated) is searched first
 *
 * Return: 0; -ENOENT unknown model or key (with the nearest names), -EINVAL,
 * -ENOEXEC other ABI, with the sentence.
 */
int delay_open(const char *model, const char *links, const char *const *what_ifs, size_t n_what_ifs,
	       const struct topology *world, const char *const *dirs, uint64_t seed,
	       struct delay_chain **ret, struct err *err);
struct delay_chain *delay_free(struct delay_chain *d);
/* What a scheduler plans over; borrowed. Without one it plans nothing. */
struct fabric;
void delay_set_fabric(struct delay_chain *d, const struct fabric *f);
const struct fabric *delay_fabric(const struct delay_chain *d);

/* All times of the model, and of the links of its messages, are taken @of times as long as it says:
 * to see what its error does. What-ifs add what they add. */
struct delay_scale {
	double (*of)(const void *ctx, const struct nbox_op *op); /* > 0 */
	const void *ctx;
};
void delay_set_scale(struct delay_chain *d, const struct delay_scale *s); /* borrowed; NULL: 1 */
double delay_scale(const struct delay_chain *d, const struct nbox_op *op);

/* Makes the scheduler again, for this job. Return: 0; -EINVAL with the sentence: it decides as
 * before. */
int delay_set_job(struct delay_chain *d, const struct delay_job *job, struct err *err);
/* Gives the scheduler a parameter that it has (delay_plan_has()); both texts borrowed. Return: as
 * above; -EINVAL also where it was given one. */
int delay_set_param(struct delay_chain *d, const char *key, const char *value, struct err *err);
/* What a parameter of the scheduler was given; NULL: it was not, or there is no scheduler. */
const char *delay_param_value(const struct delay_chain *d, const char *key);
/* Whether a process of the job that was set tells otherwise. Return: the variable, among those that
 * models asked for, or "NCCL": its version; NULL: nothing that counts. */
const char *delay_job_differs(const struct delay_chain *d, const struct delay_job *job);
/* Has the scheduler plan ops of @kind by @algo (enum nbox_algo). */
void delay_set_algo(struct delay_chain *d, uint32_t kind, uint32_t algo);
uint32_t delay_algo(const struct delay_chain *d, uint32_t kind); /* NBOX_ALGO_ANY: its choice */
/* What the scheduler's last plan was decided by that is not of what NCCL took: "NCCL 2.28.9, the
 * job's"; NULL: there was none. */
const char *delay_decided_by(const struct delay_chain *d);
/* The same of the last one that is: "NCCL itself". */
const char *delay_taken_by(const struct delay_chain *d);
/* Of those the record of decisions of the last one that is in it: "h100.txt"; NULL: none was. */
const char *delay_told_by(const struct delay_chain *d);

bool delay_is_uniform(const struct delay_chain *d);
bool delay_base_is_uniform(const struct delay_chain *d);   /* the model, without its what-ifs */
bool delay_works_on_messages(const struct delay_chain *d); /* a what-if does */
/* What is not uniform looks at who is named, and DELAY_NAMED_MAX what-ifs at most do. */
bool delay_is_by_ranks(const struct delay_chain *d);
enum { DELAY_NAMED_MAX = 3 };
/* Two bits for each of these what-ifs: whether it names world rank @src, and @dst. Messages that
 * differ in nothing else cost the same. */
uint32_t delay_named(const struct delay_chain *d, uint32_t src, uint32_t dst);
/* What a model would have the user know before the run: "delay model table: ..."; NULL: nothing.
 * Of several models the last one's. */
const char *delay_warning(const struct delay_chain *d);
/* The model and every what-if are NBOX_STEADY or uniform: message times may be kept for the next
 * equal op. */
bool delay_is_steady(const struct delay_chain *d);
bool delay_has_segments(const struct delay_chain *d); /* a what-if changes computation */
bool delay_has_op(const struct delay_chain *d);       /* base model has op() */
bool delay_has_message(const struct delay_chain *d);  /* base model has message() */
bool delay_has_plan(const struct delay_chain *d);     /* the model is a scheduler */
bool delay_plan_has(const struct delay_chain *d,
		    const char *key); /* a parameter of the scheduler */
/* "ring:bw=50GB/s + add:delay=5ms", "nccl over alphabeta" */
const char *delay_describe(const struct delay_chain *d);

/* The base model's op time. Return: 0; 1 no answer; -EINVAL with the sentence. */
int delay_op(struct delay_chain *d, const struct nbox_op *op, double *ret_ns, struct err *err);
/* Which messages the op has, by the scheduler. As above. */
int delay_plan(struct delay_chain *d, const struct nbox_op *op, const struct nbox_fabric *fabric,
	       struct nbox_plan *ret, struct err *err);
/* One message through all decorators (or, @base_only, none). As above. */
int delay_message(struct delay_chain *d, const struct nbox_op *op, const struct nbox_message *msg,
		  bool base_only, struct nbox_delay *ret, struct err *err);
/* What is asked from now on is of a rank there, and of an op of @c; NULL: of no op, or it is not
 * known. A chain that is not told has all its what-ifs hold at any time. */
void delay_set_moment(struct delay_chain *d, const struct moment *at, const struct target_comm *c);
/* For extras that are asked from now on: struct nbox_op's window_ns; < 0: not known, as before the
 * first call. */
void delay_set_window(struct delay_chain *d, double window_ns);
/* Equal moments for what-ifs on messages: answers that were kept hold among these. */
uint64_t delay_phase(const struct delay_chain *d);
bool delay_has_when(const struct delay_chain *d); /* a what-if does not hold at any time, or only
						   * for some communicators */
/* The first what-if that counts in steps, by its place in delay_open()'s list; -1: none. */
long delay_in_steps(const struct delay_chain *d);
/* The communicators that the i-th what-if is for; "": all. */
const char *delay_communicator(const struct delay_chain *d, size_t i);
/* The i-th of those that delay_open() was given: answers that it had a part in. */
uint64_t delay_n_used(const struct delay_chain *d, size_t i);
/* Of these whether it is for all-to-alls alone: NBOX_AHEAD. */
bool delay_is_ahead(const struct delay_chain *d, size_t i);
/* All decorators' extras, applied in order. *ret_is_ahead: one took time away for what has crossed
 * the network before. */
int delay_extra(struct delay_chain *d, const struct nbox_op *op, double so_far_ns,
		bool from_messages, double *ret_extra_ns, bool *ret_is_ahead, struct err *err);
/* How long world rank @rank takes for its segment @number, which takes its template @ns, with all
 * decorators in order. @start_ns: when it begins there, in virtual time; the rank's step is that of
 * the moment. Return: 0; -EINVAL with the sentence. */
int delay_segment(struct delay_chain *d, uint32_t rank, uint64_t number, double start_ns, double ns,
		  double *ret_ns, struct err *err);
