/* The steps of a job while it runs: so many ops of a kind and a communicator are one, as the user
 * says (option steps), from the first of them to the first of the next:
 *
 *   ops=5,op=allreduce,communicator=world,skip=2
 *
 * Step 1 begins with the first such op behind the first @skip. Each real rank counts its own ops;
 * a virtual rank is at its template's step. */
#pragma once

#include <stdint.h>

#include "scenario/target.h"

struct step_rule {
	uint64_t n_ops, skip; /* n_ops 0: nothing was said, there are no steps */
	struct target target;
};

/* Return: 0; -EINVAL with the sentence. */
int step_rule_parse(const char *text, struct step_rule *ret, struct err *err);

struct step_count;

/* Of @n_real real ranks. Return: 0; -ENOMEM. */
int step_count_new(const struct step_rule *rule, uint32_t n_real, struct step_count **ret);
struct step_count *step_count_free(struct step_count *s); /* NULL allowed; returns NULL */
/* Real rank @i (of @n_real) arrives at an op at @time_ns. Return: 1: it is the first to begin a
 * step; 0; -ENOMEM. */
int step_count_arrive(struct step_count *s, uint32_t i, uint32_t kind, uint64_t bytes,
		      const struct target_comm *c, double time_ns);
/* The step of real rank @i; 0: before the first, also of @s NULL. */
int64_t step_count_of(const struct step_count *s, uint32_t i);
/* The last step that a rank has begun; 0: none. */
int64_t step_count_last(const struct step_count *s);
/* When the first rank has begun @step; INFINITY: none has. */
double step_count_began(const struct step_count *s, int64_t step);
