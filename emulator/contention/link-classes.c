/* See link-classes.h. */
#include "contention/link-classes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A link of the new op, with the class that it was in. */
struct divided {
	const struct usage_link *link;
	uint32_t from; /* class + 1; 0: nobody has used it */
};

void link_classes_deinit(struct link_classes *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->classes[i].uses);
	for (uint32_t i = 0; i < c->n_users; i++) {
		usage_unref(c->users[i].usage);
		free(c->users[i].classes);
	}
	number_table_deinit(&c->of_link);
	number_table_deinit(&c->number);
	free(c->classes);
	free(c->users);
	*c = (struct link_classes){0};
}

/* *list has room for one more than @n of @size bytes. Return: 0; -ENOMEM. */
static int grow(void *list, uint32_t n, uint32_t *capacity, size_t size)
{
	void **at = list, *grown;
	uint32_t more = *capacity ? 2 * *capacity : 4;

	if (n < *capacity)
		return 0;
	grown = realloc(*at, more * size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*capacity = more;
	return 0;
}

static int compare(const struct divided *x, const struct divided *y)
{
	const struct usage_link *a = x->link, *b = y->link;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (a->capacity != b->capacity)
		return a->capacity < b->capacity ? -1 : 1;
	if (a->own_bytes != b->own_bytes)
		return a->own_bytes < b->own_bytes ? -1 : 1;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int by_class(const void *a, const void *b)
{
	return compare(a, b);
}

/* @user takes part in @class. */
static int add_use(struct link_classes *c, uint32_t class, const struct class_use *use)
{
	struct link_class *in = &c->classes[class];
	struct class_user *user = &c->users[use->user];

	if (grow(&in->uses, in->n, &in->n_room, sizeof(*in->uses)) ||
	    grow(&user->classes, user->n, &user->capacity, sizeof(*user->classes)))
		return -ENOMEM;
	in->uses[in->n++] = *use;
	user->classes[user->n++] = (struct usage_in_class){class, use->own_bytes, use->bytes};
	return 0;
}

/* A class of the links like @d's: their class before, and the new use. */
static int new_class(struct link_classes *c, const struct divided *d, uint32_t user)
{
	uint32_t n_before = d->from ? c->classes[d->from - 1].n : 0;
	const struct class_use use = {user, d->link->own_bytes, d->link->bytes};
	int r = grow(&c->classes, c->n, &c->capacity, sizeof(*c->classes));

	if (r)
		return r;
	c->classes[c->n++] =
		(struct link_class){.capacity = d->link->capacity, .link = d->link->link};
	for (uint32_t i = 0; i < n_before && !r; i++) {
		struct class_use before = c->classes[d->from - 1].uses[i];

		r = add_use(c, c->n - 1, &before);
	}
	return r ? r : add_use(c, c->n - 1, &use);
}

static int divide(struct link_classes *c, const struct usage *u, uint32_t user)
{
	CLEANUP(freep) struct divided *links = malloc((u->n + 1) * sizeof(*links));
	int r = 0;

	if (!links)
		return -ENOMEM;
	for (uint32_t i = 0; i < u->n; i++)
		links[i] = (struct divided){&u->links[i],
					    number_table_get(&c->of_link, u->links[i].link + 1)};
	qsort(links, u->n, sizeof(*links), by_class);
	for (uint32_t i = 0; i < u->n && !r; i++) {
		uint32_t *class;

		if (i == 0 || compare(&links[i - 1], &links[i]) != 0)
			r = new_class(c, &links[i], user);
		class = r ? NULL : number_table_at(&c->of_link, links[i].link->link + 1);
		if (!class)
			return -ENOMEM;
		*class = c->n;
	}
	return r;
}

static double most_per_connection(const struct usage *u)
{
	double most = 0;

	for (uint32_t i = 0; i < u->n; i++)
		most = fmax(most, u->links[i].bytes / u->links[i].connections);
	return most;
}

int link_classes_add(struct link_classes *c, struct usage *u, uint32_t *ret_user)
{
	uint32_t *place = number_table_at(&c->number, u->number);
	int r;

	if (place && *place) {
		*ret_user = *place - 1;
		return 0;
	}
	r = place ? grow(&c->users, c->n_users, &c->users_capacity, sizeof(*c->users)) : -ENOMEM;
	if (r == 0) {
		*place = c->n_users + 1;
		*ret_user = c->n_users++;
		c->users[*ret_user] =
			(struct class_user){.usage = usage_ref(u),
					    .most_per_connection = most_per_connection(u)};
		r = divide(c, u, *ret_user);
	}
	if (r)
		link_classes_deinit(c);
	return r;
}
