/* Embedding vectors that go to the ranks of their samples: by an all-to-all behind the computation,
 * or as one-sided stores while it goes on (Chen et al., PGAS-style communication for multi-GPU
 * embedding retrieval). Times are nanoseconds from the kernel's start, bandwidths bytes a
 * nanosecond.
 *
 * Each rank has some tables and looks up all samples of the batch in them; what it finds for a
 * sample is a vector, which belongs to the sample's rank. Samples are split evenly, the first ranks
 * have one more where that leaves a rest. Ranks are alike, but for that rest; the busiest one's
 * time is meant. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct onesided {
	uint32_t n_ranks;         /* >= 2 */
	uint64_t tables, samples; /* tables of each rank; samples of the batch */
	uint32_t vector_bytes;
	double compute_ns; /* of looking up tables x samples vectors, without stores to others */
	double bandwidth;  /* of a rank's port */
	double alpha_ns;
	bool has_links_to_each; /* a link between any two ranks instead, of that bandwidth */

	/* of the collective */
	double sync_ns, sync_peer_ns; /* before it; more for each peer beyond the first */
	double unpack; /* at which what was received is put in order; 0: in no time */

	/* of the stores */
	uint32_t message_bytes; /* vectors go in messages of so many bytes */
	uint32_t header_bytes;  /* of each packet, besides */
	double slowdown; /* the kernel takes (1 + slowdown (n-1)/n) times as long with stores */
	double quiet_ns, quiet_peer_ns; /* until all stores are known to be done; as sync */
	uint64_t flush_bytes; /* an aggregator sends its peer's messages as one packet once they are
				 so many bytes; 0: there is none, each message is a packet */
	double flush_ns;      /* or so long after the first of them came; INFINITY */
};

/* Bytes that a rank sends to others, receives, and sends to the peer that gets most. */
struct onesided_volume {
	uint64_t sent, received, pair;
};
struct onesided_volume onesided_volume(const struct onesided *o, uint32_t rank);
/* Messages of a rank, at most. */
uint64_t onesided_messages(const struct onesided *o);

struct onesided_collective {
	double compute_ns, sync_ns, wire_ns, unpack_ns, end_ns;
};
/* Computation, sync, alpha + bytes/bandwidth, unpack: one after the other. */
struct onesided_collective onesided_collective(const struct onesided *o);

/* The end of stores without an aggregator. Messages come evenly over the kernel's time and take
 * turns on a link: max(C + s, C/M + M s) + alpha + quiet, for M messages on the busiest link, each
 * of s = (payload + header)/bandwidth. */
double onesided_closed(const struct onesided *o);

enum onesided_bound {
	ONESIDED_COMPUTE, /* the link is idle at times */
	ONESIDED_HEADERS, /* it would be without headers */
	ONESIDED_LINK,
};
extern const char *const onesided_bound_names[]; /* by enum onesided_bound */

struct onesided_stores {
	double compute_ns; /* with the slowdown */
	double end_ns;
	uint64_t packets; /* on the busiest link, as bytes */
	uint64_t bytes;   /* without headers */
	enum onesided_bound bound;
};
/* Packets in the order in which they are sent; bytes without the header. */
struct onesided_sink {
	void *ctx;
	void (*packet)(void *ctx, double start_ns, double end_ns, uint64_t bytes);
};
/* The same by simulation of each message, also with an aggregator; @sink: NULL. O(messages).
 * Return: 0; -ENOMEM. */
int onesided_play(const struct onesided *o, const struct onesided_sink *sink,
		  struct onesided_stores *ret);

/* Bytes that have left on the busiest link at @n times from 0 to @until_ns, evenly. Return: 0;
 * -ENOMEM. */
int onesided_curve(const struct onesided *o, double until_ns, uint32_t n, double *ret);
void onesided_collective_curve(const struct onesided *o, double until_ns, uint32_t n, double *ret);
