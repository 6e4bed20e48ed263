/* Bytes for exchange payload. Their contents mean nothing, since the real NCCL moves the job's
 * data. Their places do: a peer with a large buffer reads and writes memory, a peer with a small
 * one stays in its cache. So a virtual peer uses memory as host NCCL's ranks do
 * (core/player/run.c): it has an input, an output, and a few slots for what it receives and
 * reduces. Successive messages use successive places of an area as large as the op's own buffer.
 * All is mapped when first needed. */
#pragma once

#include <stdint.h>

#define PAYLOAD_SLOTS 8 /* of a rank's thread in host NCCL */

struct payload {
	uint8_t *fill, *scratch; /* owned mappings, input and output; NULL: not yet */
	uint8_t *slots;          /* owned mapping, PAYLOAD_SLOTS of max_message */
	uint64_t bytes;          /* of input and of output */
	uint64_t max_message;
	uint64_t touched; /* bytes of fill that have pages of their own */
};

/* Return: 0 or -ENOMEM; nothing happens when it is there. */
int payload_map(struct payload *p, uint64_t max_message_bytes);
void payload_unmap(struct payload *p);
/* Gives the fill buffer real pages, before the first message of an op with @footprint bytes. Pages
 * that were never written read as one page of zeros, which is always in cache. */
void payload_need(struct payload *p, uint64_t footprint);
/* Where message @index of @bytes on a connection lies in input or output, for an op whose buffer
 * has @footprint bytes. @bytes must not be above max_message_bytes. */
const void *payload_source(const struct payload *p, uint64_t index, uint64_t bytes,
			   uint64_t footprint);
void *payload_sink(const struct payload *p, uint64_t index, uint64_t bytes, uint64_t footprint);
/* Where a message lies that is reduced. */
void *payload_slot(const struct payload *p, uint64_t index);
/* The work of a peer that reduces a message in its slot: reads it and as many bytes of its input,
 * writes the result to @to, an output or the slot itself. */
void payload_reduce(const struct payload *p, void *to, uint64_t index, uint64_t bytes,
		    uint64_t footprint);
/* The work of a peer that brings its own block into its output before it passes it on. */
void payload_copy(const struct payload *p, uint64_t index, uint64_t bytes, uint64_t footprint);
