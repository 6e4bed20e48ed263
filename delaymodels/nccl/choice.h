/* What NCCL decides about a collective: the cheapest algorithm and protocol, and into how many
 * channels, threads, chunks and slices it cuts the bytes. */
#ifndef NCCL_CHOICE_H
#define NCCL_CHOICE_H

#include "decided.h"
#include "tuner.h"

struct choice {
	uint32_t algo, proto; /* enum algo, enum nbox_proto */
	float cost_us;        /* 0 where a tuner's table decides; of one taken negative: none */
	uint32_t n_channels;  /* that have bytes */
	uint32_t n_of_comm;   /* channels that the communicator has, as far as is known */
	uint32_t n_threads;
	uint64_t channel_bytes; /* of the larger of a rank's buffers, on the fullest channel */
	uint64_t lane_bytes;    /* of the call, on that channel */
	uint64_t chunk_bytes;
	uint32_t n_slices;
};

/* NCCL's cost, or its tables', in us; negative: not possible, because of *ret_why_not (static). */
float choice_us(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto, uint64_t bytes,
		const char **ret_why_not);
/* For @bytes, the larger of a rank's buffers. Return: 0; -1 where nothing is possible. */
int choice_make(const struct comm *c, const struct tuner *t, uint32_t kind, uint64_t bytes,
		struct choice *ret);
/* This algorithm and protocol, possible by the rules or not. @n_channels: as many, or fewer where
 * they have no bytes; 0: as NCCL picks. Return: 0; -1 where nothing is known of its times. */
int choice_take(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		uint32_t n_channels, uint64_t bytes, struct choice *ret);

#endif
