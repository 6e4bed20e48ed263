/* Links of which all ops that are known take the same are one class: what is true of one of them is
 * true of all, so a set of ops has as many constraints as there are classes, however large the
 * cluster. An op that is told divides the classes that it takes parts of ("partition refinement").
 */
#pragma once

#include "base/number-table.h"
#include "contention/usage.h"

struct class_use {
	uint32_t user;
	double own_bytes, bytes;
};

struct link_class {
	double capacity;
	uint64_t link;          /* one of them */
	struct class_use *uses; /* owned */
	uint32_t n, n_room;
};

struct class_user {
	struct usage *usage; /* a reference */
	struct usage_in_class {
		uint32_t class;
		double own_bytes, bytes;
	} * classes; /* owned */
	uint32_t n, capacity;
	double most_per_connection; /* bytes */
};

struct link_classes {
	struct number_table of_link; /* number + 1: class + 1 */
	struct number_table number;  /* of a usage: its place + 1 */
	struct link_class *classes;  /* owned */
	struct class_user *users;    /* owned */
	uint32_t n, n_users, capacity, users_capacity;
};

void link_classes_deinit(struct link_classes *c);
/* The place of @u among the users, told to it if it is new. Return: 0; -ENOMEM: all is forgotten.
 */
int link_classes_add(struct link_classes *c, struct usage *u, uint32_t *ret_user);
