/* Sets of nodes of one graph, by index: dependencies of a node, frontiers of streams. */
#pragma once

struct node_set {
	unsigned n, capacity;
	unsigned *ids;
};

void node_set_clear(struct node_set *set);
void node_set_deinit(struct node_set *set);
/* Return: 0, or -ENOMEM. */
int node_set_add(struct node_set *set, unsigned id);
int node_set_merge(struct node_set *set, const struct node_set *other);
