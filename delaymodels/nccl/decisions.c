/* See decisions.h. */
#include "decisions.h"

#include <stdlib.h>
#include <string.h>

void decisions_deinit(struct decisions *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct decisions_comm *c = &d->comms[i];

		for (size_t k = 0; k < c->n_orders; k++)
			free(c->orders[k].ranks);
		free(c->orders);
		for (size_t k = 0; k < N_COSTED; k++)
			free(c->ops[k].points);
	}
	free(d->comms);
	d->comms = NULL;
	d->n = 0;
}

const struct decisions_comm *decisions_find(const struct decisions *d, uint32_t n_ranks,
					    uint32_t n_nodes)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->comms[i].n_ranks == n_ranks && d->comms[i].n_nodes == n_nodes)
			return &d->comms[i];
	return NULL;
}

char *decisions_shapes(const struct decisions *d, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < d->n; i++) {
		char one[64];
		int n = snprintf(one, sizeof(one), "%s%u%s on %u%s", i ? ", " : "",
				 d->comms[i].n_ranks, i ? "" : " ranks", d->comms[i].n_nodes,
				 i                          ? ""
				 : d->comms[i].n_nodes == 1 ? " node"
							    : " nodes");

		if (used + (size_t)n + sizeof(", ...") > size) {
			strcpy(buf + used, ", ...");
			break;
		}
		strcpy(buf + used, one);
		used += (size_t)n;
	}
	return buf;
}
