/* Which worker plays which real rank. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct worker;

struct players {
	const struct cluster *cluster; /* borrowed */
	struct worker **workers; /* owned list of borrowed: of cluster->real[i]; NULL: nobody */
};

/* Return: 0; -ENOMEM. */
int players_init(struct players *p, const struct cluster *cluster);
void players_deinit(struct players *p);
/* Where @world_rank stands among the real ranks; -1: it is virtual. */
int players_index(const struct players *p, int64_t world_rank);
/* Whether real rank @world_rank is one of @w's. */
bool players_plays(const struct players *p, const struct worker *w, uint32_t world_rank);
/* The world rank that the process @pid plays; -1: none. */
int64_t players_rank_of(const struct players *p, uint32_t pid);
void players_gone(struct players *p, const struct worker *w);
/* "world rank 3, worker 1 (pid 17 on node0)", with the first of its ranks. Return: @buf. */
char *players_name(const struct players *p, const struct worker *w, char *buf, size_t size);
#define PLAYERS_NAME_MAX 152
