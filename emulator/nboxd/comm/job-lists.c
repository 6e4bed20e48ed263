/* See job-lists.h. */
#include "nboxd/comm/job-lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nboxd/loop/warn.h"

static struct job_list *of_color(struct job_list *l, int32_t color)
{
	while (l && l->color != color)
		l = l->next;
	return l;
}

int job_list_add(struct job_list **lists, uint32_t world, int32_t color, uint32_t by,
		 const void *list, uint64_t n_bytes)
{
	uint32_t n = (uint32_t)(n_bytes / sizeof(uint32_t));
	struct job_list *l = of_color(*lists, color);

	if (n == 0 || n > world)
		return 0;
	if (l) {
		if (l->n == 0 || (l->n == n && memcmp(l->world_ranks, list, n_bytes) == 0))
			return 0;
		warn_run("the job's own lists of who is in a communicator differ: ranks %u and %u "
			 "have %u and %u ranks, or others; neither is believed",
			 l->by, by, l->n, n);
		l->n = 0;
		return 0;
	}
	l = malloc(sizeof(*l) + n_bytes);
	if (!l)
		return -ENOMEM;
	*l = (struct job_list){.next = *lists, .color = color, .by = by, .n = n};
	memcpy(l->world_ranks, list, n_bytes);
	*lists = l;
	return 0;
}

void job_list_free(struct job_list *lists)
{
	while (lists) {
		struct job_list *next = lists->next;

		free(lists);
		lists = next;
	}
}

const struct job_list *job_list_find(const struct job_list *lists, int32_t color)
{
	const struct job_list *l = of_color((struct job_list *)(uintptr_t)lists, color);

	return l && l->n ? l : NULL;
}
