/* The unit tasks of a resharding take turns at hosts: who sends each, and in which order (AlpaComm,
 * section 3.2). A task holds its sender and all of its receivers for its whole time; a host does
 * one task at a time. The plan that ends first is wanted. Given order and senders, each task starts
 * as soon as its hosts are free. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TURNS_TASKS_MAX (1 << 20)

struct turns_task {
	uint64_t senders;   /* hosts that could send it, a bit each */
	uint64_t receivers; /* hosts that all receive it; other hosts than senders: numbers of their
			       own */
	double ns;          /* > 0 */
};

enum turns_algo {
	TURNS_NAIVE,  /* the lowest sender; the tasks' own order */
	TURNS_ALPA,   /* the least loaded sender so far; the tasks' own order: as Alpa's code */
	TURNS_LB,     /* the same, longest task first */
	TURNS_DFS,    /* tries orders and senders, as far as its effort goes */
	TURNS_GREEDY, /* rounds of tasks that can go at once, each the largest of 100 random ones */
	TURNS_OURS,   /* the best of naive, lb, dfs and greedy; ends at the lower bound */
	TURNS_EXACT,  /* the same, with an effort that lets the search see all */
	TURNS_ALGOS
};

struct turn {
	uint32_t task, sender;
	double start_ns, end_ns;
};

struct turns {
	struct turn *turns; /* owned; in the order of the plan */
	uint32_t n;
	double end_ns;
	double bound_ns;    /* no plan ends before */
	bool is_optimal;    /* proven: it meets the bound, or the search has seen all */
	enum turns_algo by; /* of ours and exact: who found it */
};

/* How long to search. */
struct turns_effort {
	uint64_t seed;
	uint64_t nodes;             /* of dfs and exact, at most each */
	bool (*is_over)(void *who); /* asked now and then; NULL: never */
	void *who;
};
