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

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* The level at which the first of those that rise must stay; links that are full there. */
static double next_level(struct share *s, const struct share_user *users, uint32_t n_active,
			 uint32_t n_links)
{
	double level = INFINITY;

	for (uint32_t i = 0; i < n_active; i++) {
		const struct share_user *u = &users[s->active[i]];

		level = least(level, u->cap / u->weight);
		for (uint32_t k = 0; k < u->n_uses; k++)
			s->links[u->uses[k].link].rising += u->weight * u->uses[k].load;
	}
	for (uint32_t i = 0; i < n_links; i++)
		if (s->links[i].rising > 0)
			level = least(level, s->links[i].free / s->links[i].rising);
	for (uint32_t i = 0; i < n_links; i++) {
		struct share_link *l = &s->links[i];

		l->is_full = l->free <= level * (1 + SAME_LEVEL) * l->rising;
		l->rising = 0;
	}
	return level;
}

/* At @level @u is at its cap, or a link of it is full. */
static bool stays(const struct share *s, const struct share_user *u, double level)
{
	for (uint32_t k = 0; k < u->n_uses; k++)
		if (s->links[u->uses[k].link].is_full)
			return true;
	return u->cap <= level * (1 + SAME_LEVEL) * u->weight;
}

/* Those of @s->active that stay at @level get their speeds. Return: how many rise on. */
static uint32_t settle(struct share *s, const struct share_user *users, uint32_t n_active,
		       double level, double *ret_speed)
{
	uint32_t n_rising = 0;

	for (uint32_t i = 0; i < n_active; i++) {
		uint32_t user = s->active[i];
		const struct share_user *u = &users[user];

		if (!stays(s, u, level)) {
			s->active[n_rising++] = user;
			continue;
		}
		ret_speed[user] = least(u->cap, level * u->weight);
		for (uint32_t k = 0; k < u->n_uses; k++) {
			struct share_link *l = &s->links[u->uses[k].link];

			l->free -= ret_speed[user] * u->uses[k].load;
			l->free = l->free > 0 ? l->free : 0;
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
	for (uint32_t i = 0; i < n; i++)
		s->active[i] = i;
	while (n_active)
		n_active = settle(s, users, n_active, next_level(s, users, n_active, n_links),
				  ret_speed);
	return 0;
}
