/* The delay models of a configuration, opened. */
#pragma once

#include "config/config.h"
#include "engine/delay.h"

/* @dirs: as delay_open() has it. Return: as delay_open(); the sentence begins with the place where
 * the model or the what-if stands that is wrong. */
int open_model(const struct config *c, const char *const *dirs, struct delay_chain **ret,
	       struct err *err);

/* How far the fabric may be believed: "not calibrated", or the error where it was fitted, and how
 * far beyond that this world, and ops of up to @most_bytes (nccl-tests' sizes; 0: not known), are.
 * Return: @buf. */
char *open_model_calibration(const struct config *c, double most_bytes, char *buf, size_t size);
/* The network that the times of @chain come from, in words: the fabric's name, where its parts are
 * from and its calibration, or latencies and bandwidths of the two hops; "" for model none. Return:
 * @buf. */
char *open_model_network(const struct config *c, const struct delay_chain *chain, char *buf,
			 size_t size);
