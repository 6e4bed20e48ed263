/* See ids.h. */
#include "nboxd/full/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "nboxd/full/own.h"
#include "topology/template.h"

/* Where a communicator's ranks stand, as bootstrap/ and traffic/ take it. */
struct places {
	uint32_t *node, *template; /* owned, by rank */
};

static void places_deinit(struct places *p)
{
	free(p->node);
	free(p->template);
}

static int places_init(struct places *p, const struct comm *c)
{
	const struct topology *t = c->comms->cluster->topology;

	p->node = malloc(c->n_ranks * sizeof(*p->node));
	p->template = malloc(c->n_ranks * sizeof(*p->template));
	if (!p->node || !p->template)
		return -ENOMEM;
	for (uint32_t r = 0; r < c->n_ranks; r++) {
		p->node[r] = topology_node(t, membership_world(&c->members.map, r));
		p->template[r] = c->real[template_of(&c->templates, r)].rank;
	}
	return 0;
}

/* Ranks that records play have no NCCL. */
static int check_members(const struct comm *c, struct err *err)
{
	for (uint32_t i = 0; i < c->n_real; i++)
		if (c->real[i].is_recorded)
			return err_set(err, ENOTSUP,
				       "rank %u (world rank %u) is played from a record (--with), "
				       "which has no messages of NCCL's: --nccl gate can do that",
				       c->real[i].rank, c->real[i].world_rank);
	return 0;
}

static const struct nccl_records *find_records(const struct full *f, struct err *err)
{
	char sentence[ERR_TEXT_MAX] = "";
	const struct nccl_records *records;

	if (!f->version) {
		err_set(err, ENOTSUP,
			"no worker has told which version its NCCL is, and the records of its "
			"bootstrap follow from that: --nccl gate needs none");
		return NULL;
	}
	records = nccl_records_find(f->version, false, sentence, sizeof(sentence));
	if (!records)
		err_set(err, ENOTSUP, "%.400s; --nccl gate runs with any", sentence);
	return records;
}

/* Both ends of what NCCL does beyond the real nodes. */
static int make(struct full_comm *fc, const struct places *p, uint8_t *ret_id, struct err *err)
{
	struct comm *c = fc->comm;
	int r = traffic_comm_make(fc->full->traffic, c->n_ranks, p->node, &c->is_real, fc,
				  &fc->traffic, err);

	if (r == 0)
		r = bootstrap_comm_make(bootstrap_serve_bootstrap(fc->full->serve), fc->records,
					c->n_ranks, p->node, p->template, 1, ret_id, &fc->bootstrap,
					err);
	if (r == -EINVAL)
		err_prefix(err, r, "NCCL cannot run at the virtual size here (--nccl gate can)");
	return r;
}

int full_make_id(void *full, struct comm *c, uint8_t ret_id[WIRE_ID_BYTES], struct err *err)
{
	CLEANUP(places_deinit) struct places places = {NULL, NULL};
	struct full *f = full;
	const struct nccl_records *records = find_records(f, err);
	struct full_comm *fc;
	int r = records ? check_members(c, err) : -ENOTSUP;

	_Static_assert(WIRE_ID_BYTES == NCCL_ID_BYTES, "an id of NCCL's");
	if (r < 0)
		return r;
	fc = calloc(1, sizeof(*fc));
	if (!fc || places_init(&places, c) < 0) {
		free(fc);
		return err_set(err, ENOMEM, "out of memory");
	}
	fc->full = f;
	fc->comm = c;
	fc->records = records;
	fc->n_tree_channels = UINT32_MAX;
	r = make(fc, &places, ret_id, err);
	if (r < 0) {
		traffic_comm_end(fc->traffic);
		free(fc);
		return r;
	}
	DL_APPEND(f->list, fc);
	c->full = fc;
	return 0;
}

void full_end_comm(struct comm *c)
{
	struct full_comm *fc = c->full;
	struct full *f;

	if (!fc)
		return;
	f = fc->full;
	f->n_transports += bootstrap_comm_transports(fc->bootstrap);
	f->n_failed -= fc->code != 0;
	bootstrap_comm_end(fc->bootstrap);
	traffic_comm_end(fc->traffic);
	DL_DELETE(f->list, fc);
	c->full = NULL;
	free(fc);
}
