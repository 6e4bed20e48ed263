/* What the hops of a job's ops cost: by the delay model and fabric of a configuration, or alpha and
 * bandwidth. */
#pragma once

#include "config/config.h"
#include "dfg/hops.h"
#include "engine/price.h"
#include "engine/solve-plan.h"
#include "engine/solver.h"
#include "nbox/replay/job.h"

struct costs {
	const struct job *job;       /* borrowed */
	const struct config *config; /* borrowed; NULL: alpha and bandwidth of the job's topology */
	struct delay_chain *delay;   /* owned; NULL: so */
	struct solver *solver;       /* owned */
	bool is_measured;            /* ops take as long as they took in the job; hops share that */
	int algo;                    /* enum sched_algo of all-reduces; -1: the op's own */
	uint32_t n_servers;          /* of a parameter server, in place of all-reduces; 0: none */
	struct costs_known *known;   /* owned */
	uint32_t n_known;
};

/* @models: the folder of delay models. Return: 0; negative errno with the sentence. */
int costs_open(const struct job *job, const struct config *c, const char *models, struct costs *ret,
	       struct err *err);
void costs_close(struct costs *c);

/* Of one op. It points into itself: it stays where it is. */
struct shape {
	const struct costs *costs;
	const struct job_comm *comm;
	struct sched s;
	struct price price;
	struct planned planned;
	bool is_planned;
	struct sim_cost cost;
	const struct membership *members; /* of the schedule's ranks */
	uint32_t flows[2];                /* of plain costs, by NBOX_INTRA, NBOX_INTER */
	uint32_t period;
	double lead_ns;  /* before the first message */
	double whole_ns; /* what the op takes, all together; < 0: that follows from its hops */
	bool is_whole;   /* it has no hops */
};

/* Return: 0; negative errno with the sentence; shape_deinit() in any case. */
int shape_make(struct costs *c, const struct job_op *op, struct shape *ret, struct err *err);
void shape_deinit(struct shape *s);
/* How long it takes as one, all ranks together, without shape_extra(): by the model, or as
 * measured. Return: as above. */
int shape_whole(struct costs *c, const struct job_op *op, const struct shape *s, double *ret_ns,
		struct err *err);
/* What what-ifs add to it as a whole, not to its messages. Return: as above. */
int shape_extra(struct costs *c, const struct job_op *op, const struct shape *s, double *ret_ns,
		struct err *err);
/* How many hops it has, that stand for all; 0: it is one. Return: as above. */
int costs_hops(struct costs *c, const struct job_op *op, uint64_t *ret, struct err *err);
/* What the hops of equal ops take without a factor; NULL: out of memory. NAN: not known yet. */
double *costs_alone(struct costs *c, const struct job_op *op);
/* The model knows of no message, but how long whole ops take. */
bool costs_are_whole(const struct costs *c);
/* Of @bytes that world ranks send to each other. Return: as above. */
int costs_p2p(struct costs *c, const struct job_op *op, uint32_t src, uint32_t dst, uint64_t bytes,
	      struct nbox_delay *ret, struct err *err);
