/* See players.h. */
#include "nboxd/job/players.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "members/members.h"
#include "nboxd/loop/worker.h"

int players_init(struct players *p, const struct cluster *cluster)
{
	p->cluster = cluster;
	p->workers = calloc(cluster->n_real, sizeof(struct worker *));
	return p->workers ? 0 : -ENOMEM;
}

void players_deinit(struct players *p)
{
	free(p->workers);
}

int players_index(const struct players *p, int64_t world_rank)
{
	for (size_t i = 0; i < p->cluster->n_real; i++)
		if (p->cluster->real[i] == world_rank)
			return (int)i;
	return -1;
}

bool players_plays(const struct players *p, const struct worker *w, uint32_t world_rank)
{
	int i = players_index(p, world_rank);

	return i >= 0 && p->workers[i] == w;
}

int64_t players_rank_of(const struct players *p, uint32_t pid)
{
	for (size_t i = p->cluster->n_real; i-- > 0;)
		if (p->workers[i] && p->workers[i]->pid == pid)
			return p->cluster->real[i];
	return -1;
}

void players_gone(struct players *p, const struct worker *w)
{
	for (size_t i = 0; i < p->cluster->n_real; i++)
		if (p->workers[i] == w)
			p->workers[i] = NULL;
}

char *players_name(const struct players *p, const struct worker *w, char *buf, size_t size)
{
	char name[WORKER_NAME_MAX];

	worker_name(w, name, sizeof(name));
	for (size_t i = 0; i < p->cluster->n_real; i++) {
		if (p->workers[i] == w) {
			snprintf(buf, size, "world rank %u, %s", p->cluster->real[i], name);
			return buf;
		}
	}
	snprintf(buf, size, "%s", name);
	return buf;
}
