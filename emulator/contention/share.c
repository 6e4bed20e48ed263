/* See share.h. */
#include "contention/share.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Levels that differ by less are one: users of equal links stay in one round. */
#define SAME_LEVEL 1e-12

void share_deinit(struct share *s)
{
	free(s->links);
	free(s->active);
	*s = (struct share){0};
}

static int make_room(struct share *s, uint32_t n_users, uint32_t n_links)
{
	if (n_links > s->n_links) {
		struct share_link *links = realloc(s->links, n_links * sizeof(*links));

		if (!links)
			return -ENOMEM;
		s->links = links;
		s->n_links = n_links;
	}
	if (n_users > s->n_users) {
		uint32_t *active = realloc(s->active, n_users * sizeof(*active));

		if (!active)
			return -ENOMEM;
		s->active = active;
		s->n_users = n_users;
	}
	return 0;
}

/* The level at which the first of those that rise must stay. */
static double next_level(struct share *s, const struct share_user *users, uint32_t n_active)
{
	double level = INFINITY;

	s->round++;
	for (uint32_t i = 0; i < n_active; i++) {
		const struct share_user *u = &users[s->active[i]];

		level = fmin(level, u->cap / u->weight);
		for (uint32_t k = 0; k < u->n_uses; k++) {
			struct share_link *l = &s->links[u->uses[k].link];

			if (l->round != s->round)
				l->rising = 0;
			l->round = s->round;
			l->rising += u->weight * u->uses[k].load;
		}
	}
	for (uint32_t i = 0; i < n_active; i++) {
		const struct share_user *u = &users[s->active[i]];

		for (uint32_t k = 0; k < u->n_uses; k++) {
			const struct share_link *l = &s->links[u->uses[k].link];

			level = fmin(level, l->free / l->rising);
		}
	}
	return level;
}

/* At @level @u is at its cap, or a link of it is full. */
static bool stays(const struct share *s, const struct share_user *u, double level)
{
	level *= 1 + SAME_LEVEL;
	for (uint32_t k = 0; k < u->n_uses; k++) {
		const struct share_link *l = &s->links[u->uses[k].link];

		if (l->free <= level * l->rising)
			return true;
	}
	return u->cap <= level * u->weight;
}

/* Those of @s->active that stay at @level get their speeds. Return: how many rise on. */
static uint32_t settle(struct share *s, const struct share_user *users, uint32_t n_active,
		       double level, double *ret_speed)
{
	uint32_t n_rising = 0;

	/* who stays is decided for all before the first one takes what it gets */
	for (uint32_t i = 0; i < n_active; i++) {
		uint32_t user = s->active[i];
		const struct share_user *u = &users[user];

		s->active[i] = s->active[n_rising];
		s->active[n_rising] = user;
		ret_speed[user] = fmin(u->cap, level * u->weight);
		n_rising += !stays(s, u, level);
	}
	for (uint32_t i = n_rising; i < n_active; i++) {
		const struct share_user *u = &users[s->active[i]];

		for (uint32_t k = 0; k < u->n_uses; k++) {
			struct share_link *l = &s->links[u->uses[k].link];

			l->free = fmax(0, l->free - ret_speed[s->active[i]] * u->uses[k].load);
		}
	}
	return n_rising;
}

int share_solve(struct share *s, const struct share_user *users, uint32_t n, uint32_t n_links,
		const double *left, double *ret_speed)
{
	uint32_t n_active = n;

	if (make_room(s, n, n_links))
		return -ENOMEM;
	for (uint32_t i = 0; i < n_links; i++)
		s->links[i] = (struct share_link){.free = left ? left[i] : 1};
	s->round = 0;
	for (uint32_t i = 0; i < n; i++)
		s->active[i] = i;
	while (n_active)
		n_active = settle(s, users, n_active, next_level(s, users, n_active), ret_speed);
	return 0;
}
