/* A communicator of two nodes with one real rank each, 0 and 2, and four virtual ones, in which one
 * real rank does something of its own: the player whose arg is the job. */
#pragma once

#include "world.h"

struct job {
	const struct nccl_records *table;
	struct world world;
	uint8_t id[2][NCCL_ID_BYTES];
	uint32_t n_ids;
	struct bootstrap_comm *comm;
};

void job_make(struct play *play, struct job *j);
uint64_t job_magic(const struct job *j);
/* The ring of an init. */
struct rank_comm *job_init(struct player *p);
/* All that a rank does in init; and then it waits in an all-gather. */
struct rank_comm *job_made(struct player *p);
/* A vote for a split in which all ranks have color 3. */
void job_vote(struct rank_comm *c);
/* A connection to nbox with NCCL's head, and a message on it. */
struct wire *job_connect(struct player *p, unsigned port, uint64_t magic, int32_t type);
void job_frame(struct player *p, struct wire *w, const void *bytes, int32_t n);
