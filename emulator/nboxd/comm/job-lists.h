/* Lists of world ranks that the job itself has for its communicators: the shim asked (see
 * shim/job) and sent them with the check-ins. They are checked against each other here, and against
 * those who checked in where they are used; a list that fails is not believed. */
#pragma once

#include <stdint.h>

struct job_list {
	struct job_list *next;
	int32_t color; /* of a split; 0 */
	uint32_t by;   /* the rank that said it first */
	uint32_t n;    /* 0: it is not believed */
	uint32_t world_ranks[];
};

/* Keeps the list of @n_bytes that rank @by sent; of two that differ, a warning, neither counts.
 * None, or one larger than @world, is left out. Return: 0; -ENOMEM. */
int job_list_add(struct job_list **lists, uint32_t world, int32_t color, uint32_t by,
		 const void *list, uint64_t n_bytes);
void job_list_free(struct job_list *lists);
/* The list for @color, or NULL. */
const struct job_list *job_list_find(const struct job_list *lists, int32_t color);
