/* By how much the clocks of hosts differ, from when messages were sent and received: the alignment
 * of dPRO (Hu et al., MLSys 2022, section 4.2). A time t of host h is t + theta[h] by the clock of
 * host 0, with drift t + theta[h] + drift[h] * (t - middle).
 *
 * No message is received before it is sent: that bounds the differences (Floyd and Warshall's
 * shortest paths). Within the bounds they are those with which the receives of a family take times
 * that vary least: a receive takes its time from when its message was sent, if that was behind its
 * post. A member of a collective receives from all that it needs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CLOCKS_HOSTS_MAX 512

struct clocks_send {
	uint32_t host;
	double start_ns;
};

struct clocks_recv {
	uint32_t host, family; /* family: receives that take the same time, but for noise */
	double posted_ns, end_ns;
	uint32_t first_send, n_sends; /* all that it waits for, at its own host, too */
};

/* All borrowed. */
struct clocks_ask {
	const struct clocks_recv *recvs;
	const struct clocks_send *sends;
	uint32_t n_hosts, n_recvs, n_families;
	bool has_drift;
};

struct clocks_host {
	double theta_ns, drift;
	double low_ns, high_ns; /* bounds of theta; infinite: no message says */
};

/* Two receives that no clocks can explain, where the clocks run alike. */
struct clocks_conflict {
	uint32_t recv, other; /* numbers; other may be recv */
	double ns;            /* by how much */
};

struct clocks {
	struct clocks_host *hosts; /* owned */
	double middle_ns;
	double spread_ns; /* of the receives of a family, root mean square, aligned */
	double spread_before_ns;
};

/* Return: 0; 1: *conflict says which clocks contradict each other; -E2BIG with the sentence;
 * -ENOMEM. */
int clocks_align(const struct clocks_ask *ask, struct clocks *ret, struct clocks_conflict *conflict,
		 struct err *err);
double clocks_time(const struct clocks *c, uint32_t host, double ns);
void clocks_deinit(struct clocks *c);
