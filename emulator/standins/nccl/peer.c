/* Peers that leave and peers that are lost: which ops fail because of them, and with what
 * sentence. A peer that leaves in good order says how many connections it opened to us; an op
 * fails only when it waits for bytes that can no longer come. When a connection breaks, an abort
 * that arrives on another one may say why. */
#include <stdio.h>

#include "base/clock.h"
#include "standins/nccl/impl.h"

/* How long connections may still come that a peer opened before it left. */
#define LEFT_NS (2 * NS_PER_S)
/* How long the abort that explains a lost connection may take. */
#define REASON_NS NS_PER_S

const char *peer_name(const struct ncclComm *c, uint32_t rank, char buf[128])
{
	const struct peer_info *p = &c->peers[rank].info;

	snprintf(buf, 128, "rank %u (%s, process %u)", rank, p->host, p->pid);
	return buf;
}

bool peer_may_connect(const struct ncclComm *c, const struct peer *p)
{
	if (p->has_left && p->n_opened == UINT64_MAX)
		return clock_now_ns() < c->left_until_ns;
	return !p->has_left || p->n_in < p->n_opened;
}

void peer_look_for_orphans(struct ncclComm *c, uint32_t peer)
{
	const struct peer *p = &c->peers[peer];
	const struct inbox *in;
	char who[128], text[ERR_TEXT_MAX];

	for (in = p->in; in && !peer_may_connect(c, p); in = in->next) {
		if (!in->n_posts || (in->conn && !in->conn->is_dead))
			continue;
		snprintf(text, sizeof(text), "this op needs a rank that has left: %s",
			 peer_name(c, peer, who));
		peer_lost(c, PEER_SILENT, ncclRemoteError, text);
	}
}

void peer_left(struct ncclComm *c, uint32_t peer, uint64_t n_opened)
{
	struct peer *p = &c->peers[peer];

	p->has_left = true;
	p->n_opened = n_opened;
	peer_look_for_orphans(c, peer);
}

void peer_unwatched(struct ncclComm *c, uint32_t peer)
{
	struct peer *p = &c->peers[peer];

	if (p->has_left)
		return;
	p->has_left = true;
	p->n_opened = UINT64_MAX;
	c->left_until_ns = clock_now_ns() + LEFT_NS;
}

void peer_look_for_left(struct ncclComm *c)
{
	uint32_t i;

	if (!c->left_until_ns || clock_now_ns() < c->left_until_ns)
		return;
	for (i = 0; i < c->n_ranks; i++)
		peer_look_for_orphans(c, i);
}

void peer_lost(struct ncclComm *c, uint32_t peer, ncclResult_t code, const char *text)
{
	if (c->is_lost)
		return;
	c->is_lost = true;
	c->lost_peer = peer;
	c->lost_until_ns = clock_now_ns() + REASON_NS;
	c->lost_code = code;
	snprintf(c->lost_text, sizeof(c->lost_text), "%s", text);
}

/* Links have no order among each other: over rdma a connection can be seen to close before the
 * abort that its peer wrote on the control ring first. A neighbour in the ring whose ring
 * connections have ended, too, was killed. For any other rank, its neighbours say why. */
void peer_judge_lost(struct ncclComm *c)
{
	uint32_t peer = c->lost_peer, n = c->n_ranks;
	bool is_neighbour = (peer + 1) % n == c->rank || (c->rank + 1) % n == peer,
	     may_explain = false;
	struct conn *k;

	for (k = proxy_conns(); k; k = k->next) {
		if (k->comm == c && k->key == KEY_RING && !k->is_dead) {
			link_progress(k->link);
			may_explain |= !k->is_dead && (!is_neighbour || k->peer == peer);
		}
	}
	if (!may_explain || peer == PEER_SILENT || clock_now_ns() >= c->lost_until_ns)
		comm_fail(c, c->lost_code, "%s", c->lost_text);
}
