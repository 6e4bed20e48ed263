/* User objects: what a program ties to the life of a graph. */
#pragma once

#include <stdbool.h>

#include "object.h"
#include <cuda_runtime_api.h>

struct user_object {
	struct object object;
	atomic_uint n_owned; /* references by the program and by graphs */
	void *ptr;
	cudaHostFn_t destroy;
};

struct user_list {
	unsigned n, capacity;
	struct user_object **objects; /* each with one count of n_owned */
};

/* Return: 0, or -ENOMEM. The caller has a count of @user for it. */
int user_list_add(struct user_list *list, struct user_object *user);
/* Drops @n counts; with the last one the destructor runs, which may not call the runtime. Return:
 * false when there are not that many. */
bool user_drop(struct user_object *user, unsigned n);
void user_putp(struct user_object **user);
/* Adds a count of each object in @from to @to. Return: 0, or -ENOMEM and @to unchanged. */
int user_list_copy(const struct user_list *from, struct user_list *to);
/* Drops all counts; runs the destructors of those whose last one it was. */
void user_list_deinit(struct user_list *list);
