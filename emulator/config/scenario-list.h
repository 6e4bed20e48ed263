/* Texts of a scenario file, with their places. */
#pragma once

#include <stddef.h>

struct scenario_item {
	char *text; /* owned */
	unsigned line, column;
};

struct scenario_list {
	struct scenario_item *items; /* owned */
	size_t n;
};

/* @text becomes the list's, NULL: there was no memory. Return: 0; -ENOMEM. */
int scenario_list_add(struct scenario_list *l, char *text, unsigned line, unsigned column);
void scenario_list_deinit(struct scenario_list *l);
