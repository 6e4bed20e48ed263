/* Inside mesh/: when the tasks of a plan start and end, given their order and their senders. */
#pragma once

#include "mesh/turn.h"

struct turns_hosts {
	double senders[64], receivers[64]; /* when each is free again */
};

/* When the task could start at this sender. */
double turns_start(const struct turns_hosts *h, const struct turns_task *t, uint32_t sender);
void turns_hold(struct turns_hosts *h, const struct turns_task *t, uint32_t sender, double until);
/* Sets the times of all, and when the last is over. */
void turns_play(const struct turns_task *tasks, struct turns *t);

/* Takes the lowest bit off. Return: its number. */
static inline uint32_t turns_take_host(uint64_t *hosts)
{
	uint32_t h = (uint32_t)__builtin_ctzll(*hosts);

	*hosts &= *hosts - 1;
	return h;
}
