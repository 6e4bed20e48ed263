/* Inside player/: runs the steps of a thread. */
#pragma once

#include <stdint.h>

struct player;
struct thread;

/* Runs all that thread @number can run now. Return: 0; negative errno of the owner's callbacks;
 * -EINVAL: the schedule breaks its own rules. */
int thread_advance(struct player *p, uint32_t number);
/* A slot lost one of its readers. */
void slot_unref(struct player *p, struct thread *t, uint32_t slot);
/* Most slots that the thread holds at a time; 0 when it stages nothing. */
uint32_t thread_slots(const struct player *p, uint32_t number, uint64_t n_steps);
