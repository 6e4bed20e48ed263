/* The network that a run's times come from, in words. */
#pragma once

#include "engine/delay.h"

/* The cluster's own network, as people write it; borrowed. */
struct delay_network {
	const char *intra_latency, *intra_bandwidth, *inter_latency, *inter_bandwidth;
};

/* delay_warning() names those of @given that the base model does not look at; NULL in it: not
 * given. */
void delay_network_given(struct delay_chain *d, const struct delay_network *given);

/* Describes the latencies and bandwidths that the base model uses: its own parameters where they
 * are given (and names those), else @cluster's; says so when the model has no such parameter.
 * Return:
 * @buf. */
char *delay_network(const struct delay_chain *d, const struct delay_network *cluster, char *buf,
		    size_t size);
