/* hang: some ranks stand still for a time.
 *
 *   hang:rank=17,from=30s,for=10s       from then on rank 17 computes nothing for 10 s, virtual
 *   hang:rank=17,from=20steps,for=10s   the same since its run's first rank has begun step 20
 *
 * What it computed then, or would begin to, goes on where the time is over. For ever: fail with
 * how=silent. from and for are the host's own keys, and it says what time that is. */
#include <math.h>
#include <stdlib.h>

#include "nbox-delaymodel.h"

static int hang_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct nbox_ranks *who = calloc(1, sizeof(*who));

	(void)next;
	if (!who)
		host->error(host, "out of memory");
	if (!who || host->parse_ranks(host, kv, n_kv, who) < 0) {
		free(who);
		return -1;
	}
	if (who->n == 0) {
		host->error(host, "give rank= or node=: who stands still, such as rank=17");
		free(who);
		return -1;
	}
	*ret_model = who;
	return 0;
}

static int hang_segment(void *model, const struct nbox_segment *seg, double ns, double *ret_ns)
{
	if (!nbox_ranks_have(model, seg->rank) || !isfinite(seg->until_ns) ||
	    seg->start_ns >= seg->until_ns || seg->start_ns + ns <= seg->from_ns)
		return 1;
	*ret_ns = ns + seg->until_ns - fmax(seg->start_ns, seg->from_ns);
	return 0;
}

static const struct nbox_param params[] = {
	{"rank", "ranks", "none", "world ranks that stand still; or node must be given"},
	{"node", "nodes", "none", "all ranks of these nodes"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "hang",
	.summary = "some ranks stand still for a time: give from= and for=",
	.flags = NBOX_DECORATOR | NBOX_STEADY | NBOX_BY_RANKS | NBOX_OVER_TIME,
	.params = params,
	.create = hang_create,
	.destroy = free,
	.segment = hang_segment,
};
