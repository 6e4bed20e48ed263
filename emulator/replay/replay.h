/* Plays a recorded run again, on a cluster that may be another one: the real ranks compute as they
 * did, the ops take as long as the configuration's models say, on the timelines and by the rule of
 * a live run (timeline/, op/). Virtual time only: rows are taken in the order in which they happen
 * in the new cluster. No I/O but what models do, no clock, no thread. */
#pragma once

#include "config/config.h"
#include "engine/record-rows.h"
#include "op/ideal.h"
#include "replay/counts.h"
#include "replay/rows.h"
#include "timeline/timeline.h"

/* How much later than their real rank those that copy it come to @row, or, where it @is_over, are
 * over with it. All borrowed for the call. */
struct replay_lags {
	uint32_t row, real_rank;
	bool is_over;
	const uint32_t *ranks; /* @n of them, sorted, the real one among them */
	const double *ns;      /* in their order; NULL: all come with it */
	uint32_t n;
};

struct replay_sink {
	int (*lags)(void *ctx, const struct replay_lags *l); /* NULL: not wanted. Return: 0;
								-ENOMEM */
	/* @world_rank computes @ns in a stretch in which its template computed @was_ns, at a row
	 * that has that number (replay/rows.h). NULL: not wanted. Return: 0; negative errno with
	 * the sentence. */
	int (*computed)(void *ctx, uint32_t world_rank, uint64_t number, double was_ns, double ns,
			struct err *err);
	/* A sentence for the user, such as a live run's warnings. NULL: not wanted. */
	void (*warn)(void *ctx, const char *sentence);
	void *ctx;
};

/* All borrowed, and needed for as long as the answer. */
struct replay {
	const struct rows_graph *graph; /* of the run's record */
	const struct config *config; /* finished; of the cluster to be. Its real ranks are those of
					the record */
	const char *const *dirs;     /* of delay models: as delay_open() has it */
	const struct sizes *sizes;   /* of the record and its like; NULL: it is alone */
	const struct declared_counts *declared; /* NULL: nothing is */
	const struct ideal *ideal;              /* NULL: nothing is taken away */
	const struct delay_scale *scale;        /* of the model's times; NULL: as it says */
	struct timeline_terms *terms;           /* by row of @graph, filled; NULL: not wanted */
	struct replay_sink sink;
};

struct replay_told {
	struct counts_told counts;
	uint64_t n_lost;      /* rows that waited for what the record does not have, or for a rank
				 that failed, or came after that: cut off */
	char ended[256];      /* where a failure ends the job; "": none does */
	char decided_by[512]; /* what a scheduler decided ops by; "": nothing */
	char network[512];    /* that times come from, in words; "": the model is none */
};

/**
 * replay_play - the record that the run would have left
 * @ret: rows as in the old one, in the same order, with virtual times of the new cluster; wall
 *       times are those of the old one. Its lists of deps and calls are the old record's. The
 *       caller's to record_deinit(). Rows that were lost are left out
 *
 * Return: 0; negative errno with the sentence: -EINVAL where communicators have no place in the new
 * world, or a model refuses.
 */
int replay_play(const struct replay *in, struct record *ret, struct replay_told *told,
		struct err *err);
