/* See job.h. */
#include "cmocka-all.h"

#include <string.h>

#include "job.h"

void job_make(struct play *play, struct job *j)
{
	static const uint32_t node[] = {0, 1, 2, 3, 4, 5}, template[] = {0, 0, 2, 2, 2, 0};
	struct err err = {""};

	*j = (struct job){.table = table_new(), .n_ids = 1};
	j->world = (struct world){.n = 6, .real = {0, 2}, .n_real = 2};
	memcpy(j->world.node, node, sizeof(node));
	memcpy(j->world.template, template, sizeof(template));
	if (bootstrap_comm_make(play->b, j->table, 6, node, template, 1, j->id[0], &j->comm, &err) <
	    0)
		fail_msg("%s", err.text);
}

uint64_t job_magic(const struct job *j)
{
	uint64_t magic;

	memcpy(&magic, j->id[0], sizeof(magic));
	return magic;
}

struct rank_comm *job_init(struct player *p)
{
	struct job *j = p->arg;

	return rank_init(p, j->table, p->rank, j->world.n, j->id[0], j->n_ids);
}

struct rank_comm *job_made(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = job_init(p);

	rank_contacts(c, false);
	world_init(c, &j->world, 5);
	return c;
}

static int votes_alike(struct play *play, struct bootstrap_comm *parent, int32_t *color,
		       int32_t *key, struct err *err)
{
	for (int i = 0; i < 6; i++)
		color[i] = 3;
	return 0;
}

void job_vote(struct rank_comm *c)
{
	int32_t *all = play_alloc(c->p->play, 6 * 8);

	c->p->play->votes = votes_alike;
	all[2 * c->rank + 1] = 3;
	rank_gather(c, (uint8_t *)all, 8);
}

struct wire *job_connect(struct player *p, unsigned port, uint64_t magic, int32_t type)
{
	uint8_t address[NCCL_ADDRESS_BYTES];
	struct wire *w;

	play_port(port, address);
	w = player_connect(p, address);
	player_send(p, w, &magic, sizeof(magic));
	player_send(p, w, &type, sizeof(type));
	return w;
}

void job_frame(struct player *p, struct wire *w, const void *bytes, int32_t n)
{
	player_send(p, w, &n, sizeof(n));
	player_send(p, w, bytes, (size_t)n);
}
