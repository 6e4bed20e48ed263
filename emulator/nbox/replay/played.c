/* See played.h. */
#include "nbox/replay/played.h"

#include <stdlib.h>

bool play_has_row(const struct play *p, uint32_t row)
{
	return p->policy != PLAY_DAYDREAM || p->job->rows[row].rank == 0;
}

void played_deinit(struct played *p)
{
	dfg_free(p->g);
	free(p->begin);
	free(p->at);
	free(p->end);
	free(p->owner);
	free(p->devices);
	*p = (struct played){.g = NULL};
}

double played_ns(const struct job *j, const struct played *p, uint32_t row)
{
	return j->rows[row].op == JOB_NONE ? dfg_op(p->g, p->begin[row])->start
					   : dfg_op(p->g, p->at[row])->end;
}
