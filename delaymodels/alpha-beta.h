/* What models with alpha and bandwidth share: the numbers of a hop (the model's parameters, else
 * the virtual cluster's), the time of a message, and the chunk size of pipelines. */
#ifndef ALPHA_BETA_H
#define ALPHA_BETA_H

#include <stdlib.h>

#include "nbox-delaymodel.h"

struct hops {
	/* by hop: intra, inter; a negative alpha or a bandwidth of 0: the cluster's */
	double alpha_ns[2], bytes_per_ns[2];
	uint64_t chunk_bytes; /* of a pipeline; at least 1 */
};

static inline double larger(double a, double b)
{
	return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
	return a < b ? a : b;
}

static inline int hops_parse(struct hops *m, const struct nbox_host *h, const struct nbox_kv *kv,
			     size_t n_kv)
{
	static const char *const alphas[] = {"intra_alpha", "inter_alpha"};
	static const char *const bws[] = {"intra_bw", "inter_bw"};
	double alpha_ns = -1, bytes_per_ns = 0;

	if (h->parse_time(h, "alpha", nbox_value(kv, n_kv, "alpha"), &alpha_ns) < 0 ||
	    h->parse_bandwidth(h, "bw", nbox_value(kv, n_kv, "bw"), &bytes_per_ns) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		m->alpha_ns[i] = alpha_ns;
		m->bytes_per_ns[i] = bytes_per_ns;
		if (h->parse_time(h, alphas[i], nbox_value(kv, n_kv, alphas[i]), &m->alpha_ns[i]) <
		    0)
			return -1;
		if (h->parse_bandwidth(h, bws[i], nbox_value(kv, n_kv, bws[i]),
				       &m->bytes_per_ns[i]) < 0)
			return -1;
	}
	if (h->parse_bytes(h, "chunk", nbox_value(kv, n_kv, "chunk"), &m->chunk_bytes) < 0)
		return -1;
	if (m->chunk_bytes == 0)
		h->error(h, "chunk: 0 bytes; a chunk must have at least one");
	return m->chunk_bytes ? 0 : -1;
}

/* Reads the parameters `alpha`, `bw`, those of one kind of hop, and `chunk`, as far as the model
 * has them: the host refuses the others. Return: 0, *ret_model is free()'s; -1 with the sentence.
 */
static inline int hops_create(const struct nbox_host *h, const struct nbox_kv *kv, size_t n_kv,
			      uint64_t default_chunk_bytes, void **ret_model)
{
	struct hops *m = calloc(1, sizeof(*m));

	if (!m) {
		h->error(h, "out of memory");
		return -1;
	}
	m->chunk_bytes = default_chunk_bytes;
	if (hops_parse(m, h, kv, n_kv) < 0) {
		free(m);
		return -1;
	}
	*ret_model = m;
	return 0;
}

static inline double hop_alpha(const struct hops *m, const struct nbox_net *net, int is_inter)
{
	if (m->alpha_ns[is_inter] >= 0)
		return m->alpha_ns[is_inter];
	return is_inter ? net->inter_latency_ns : net->intra_latency_ns;
}

static inline double hop_bw(const struct hops *m, const struct nbox_net *net, int is_inter)
{
	if (m->bytes_per_ns[is_inter] > 0)
		return m->bytes_per_ns[is_inter];
	return is_inter ? net->inter_bytes_per_ns : net->intra_bytes_per_ns;
}

/* Over a path: the links' latencies and that of sender and receiver; the slowest link decides how
 * long the bytes take, or the most that one lane carries. A parameter of the model stands for all
 * links. */
static inline void hops_over_path(const struct hops *m, const struct nbox_message *msg,
				  struct nbox_delay *ret)
{
	int is_inter = msg->hop == NBOX_INTER;
	double latency_ns = 0, busy_ns = 0, own_bw = m->bytes_per_ns[is_inter];

	for (uint32_t i = 0; i < msg->n_links; i++) {
		const struct nbox_link *l = &msg->links[i];
		double bw = own_bw > 0 ? own_bw : l->bytes_per_ns;

		latency_ns += l->latency_ns;
		busy_ns = larger(busy_ns, msg->wire_bytes * (double)l->flows / bw);
	}
	if (m->alpha_ns[is_inter] >= 0)
		latency_ns = m->alpha_ns[is_inter];
	if (msg->lane_bytes_per_ns > 0)
		busy_ns = larger(busy_ns, msg->wire_bytes / msg->lane_bytes_per_ns);
	ret->latency_ns = msg->step_ns + latency_ns;
	ret->occupancy_ns = busy_ns;
}

/* message() of a model: alpha + bytes * flows / bw. The flows that use the sender's port at the
 * same time share it equally. A message of a rank to itself costs nothing. */
static inline int hops_message(void *model, const struct nbox_op *op,
			       const struct nbox_message *msg, struct nbox_delay *ret)
{
	int is_inter = msg->hop == NBOX_INTER;

	*ret = (struct nbox_delay){0, 0};
	if (msg->hop == NBOX_SELF)
		return 0;
	if (msg->n_links) {
		hops_over_path(model, msg, ret);
		return 0;
	}
	ret->latency_ns = hop_alpha(model, op->net, is_inter);
	ret->occupancy_ns =
		(double)msg->bytes * (double)msg->flows / hop_bw(model, op->net, is_inter);
	return 0;
}

#endif
