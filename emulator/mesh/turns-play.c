/* See turns-play.h. */
#include "mesh/turns-play.h"

double turns_start(const struct turns_hosts *h, const struct turns_task *t, uint32_t sender)
{
	double at = h->senders[sender];

	for (uint64_t hosts = t->receivers; hosts;) {
		double free_at = h->receivers[turns_take_host(&hosts)];

		at = free_at > at ? free_at : at;
	}
	return at;
}

void turns_hold(struct turns_hosts *h, const struct turns_task *t, uint32_t sender, double until)
{
	h->senders[sender] = until;
	for (uint64_t hosts = t->receivers; hosts;)
		h->receivers[turns_take_host(&hosts)] = until;
}

void turns_play(const struct turns_task *tasks, struct turns *t)
{
	struct turns_hosts hosts = {{0}, {0}};

	t->end_ns = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		struct turn *turn = &t->turns[i];
		const struct turns_task *task = &tasks[turn->task];

		turn->start_ns = turns_start(&hosts, task, turn->sender);
		turn->end_ns = turn->start_ns + task->ns;
		turns_hold(&hosts, task, turn->sender, turn->end_ns);
		t->end_ns = turn->end_ns > t->end_ns ? turn->end_ns : t->end_ns;
	}
}
