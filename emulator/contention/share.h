/* Max-min fair shares of links. Users go at speeds from 0 to their cap; a user at speed 1 takes the
 * part *load* of each of its links. Speeds rise together, each in proportion to its user's weight,
 * until a link is full or a user at its cap: that user, or those of that link, stay as they are,
 * and the others rise on ("progressive filling"; Bertsekas and Gallager, Data Networks, 6.5.2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct share_use {
	uint32_t link;
	double load; /* > 0, of the link's capacity, at speed 1 */
};

struct share_user {
	const struct share_use *uses; /* borrowed; each link once */
	uint32_t n_uses;
	double weight; /* > 0 */
	double cap;    /* > 0; INFINITY needs a use */
};

/* Memory for shares: reused, grown as needed. */
struct share {
	struct share_link {
		double free;   /* what users that stay have left of it */
		double rising; /* load of the others for each unit of the common level */
		bool is_full;  /* at the level of this round */
	} * links;
	uint32_t *active;
	uint32_t n_links, n_users; /* there is room for */
};

void share_deinit(struct share *s);
/* The speed of each of @n users; link numbers are below @n_links. @left: the part of each link's
 * capacity that users share, from 0, where they stand still, to 1; NULL: all. Return: 0; -ENOMEM.
 * O((rounds at which somebody stays) * (links + uses of those that rise)). */
int share_solve(struct share *s, const struct share_user *users, uint32_t n, uint32_t n_links,
		const double *left, double *ret_speed);
