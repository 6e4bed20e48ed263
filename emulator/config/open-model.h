/* The delay models of a configuration, opened. */
#pragma once

#include "config/config.h"
#include "engine/delay.h"

/* @dirs: as delay_open() has it. Return: as delay_open(); the sentence begins with the place where
 * the model or the what-if stands that is wrong. */
int open_model(const struct config *c, const char *const *dirs, struct delay_chain **ret,
	       struct err *err);

/* Ops that a sentence is about. */
struct asked {
	int kind;                       /* enum coll_kind; -1: of any */
	double least_bytes, most_bytes; /* nccl-tests' sizes; 0: not known */
};

/* An op more; @bytes: as struct sched has them. */
void asked_add(struct asked *a, enum coll_kind kind, uint64_t bytes, uint32_t n_ranks);

/* How far fabric or fitted model may be believed: "not calibrated", or the error where it was
 * fitted, and how far beyond that this world and @asked are. Return: @buf. */
char *open_model_calibration(const struct config *c, const struct asked *asked, char *buf,
			     size_t size);
/* The network that the times of @chain come from, in words: the fabric's name, where its parts are
 * from and its calibration, or latencies and bandwidths of the two hops; "" for model none. Return:
 * @buf. */
char *open_model_network(const struct config *c, const struct delay_chain *chain,
			 const struct asked *asked, char *buf, size_t size);
