/* Connections between ranks: one for each (peer, key), over shared memory, TCP or rdma. The
 * sending rank makes it when it first needs it. The proxy thread owns it once it is open. The
 * receiving rank may post receives before the connection exists. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "standins/nccl/impl.h"

#define LINGER_NS (2 * NS_PER_S)

/* --- receives that wait -------------------------------------------------------------------- */

struct inbox *conn_inbox(struct ncclComm *c, uint32_t peer, uint16_t key)
{
	struct inbox *in;

	for (in = c->peers[peer].in; in; in = in->next) {
		if (in->key == key)
			return in;
	}
	in = calloc(1, sizeof(*in));
	if (!in)
		return NULL;
	in->peer = peer;
	in->key = key;
	in->next = c->peers[peer].in;
	c->peers[peer].in = in;
	return in;
}

/* --- posting and sending ------------------------------------------------------------ */

static bool is_stashed(const struct inbox *in, const struct post *p)
{
	const struct stash *s;

	for (s = in->stash; s && (s->hdr.seq != p->seq || s->hdr.index != p->index);)
		s = s->next;
	return s && s->is_whole;
}

int conn_post(struct ncclComm *c, struct inbox *in, const struct post *p)
{
	struct conn *k = in->conn;

	if (is_stashed(in, p))
		; /* it came before its sender left */
	else if (k ? (k->is_dead || k->is_bye) && !k->is_held
		   : !peer_may_connect(c, &c->peers[in->peer]))
		return -ECONNRESET;
	if (in->n_posts == in->posts_size) {
		uint32_t size = in->posts_size ? 2 * in->posts_size : 8;
		void *posts = realloc(in->posts, size * sizeof(*in->posts));

		if (!posts)
			return -ENOMEM;
		in->posts = posts;
		in->posts_size = size;
	}
	in->posts[in->n_posts++] = *p;
	if (k && k->is_held) {
		k->is_held = false;
		link_resume(k->link);
	}
	return 0;
}

struct conn *conn_out(struct ncclComm *c, uint32_t peer, uint16_t key)
{
	struct conn *k;

	for (k = c->peers[peer].out; k; k = k->peer_next) {
		if (k->key == key)
			return k;
	}
	return NULL;
}

int conn_send(struct conn *k, uint32_t lane, const struct wire_hdr *h, const void *body)
{
	if (k->is_dead || k->is_bye)
		return -ECONNRESET;
	if (k->n_sent == k->sent_size) {
		uint32_t size = k->sent_size ? 2 * k->sent_size : 16, i;
		struct sent *sent = malloc(size * sizeof(*sent));

		if (!sent)
			return -ENOMEM;
		for (i = 0; i < k->n_sent; i++)
			sent[i] = k->sent[(k->sent_first + i) % k->sent_size];
		free(k->sent);
		k->sent = sent;
		k->sent_first = 0;
		k->sent_size = size;
	}
	k->sent[(k->sent_first + k->n_sent++) % k->sent_size] =
		(struct sent){.index = h->index, .lane = lane};
	return link_send(k->link, h, body, 0);
}

/* --- the end ------------------------------------------------------------------------- */

void conn_kill(struct conn *k)
{
	k->is_dead = true;
	k->comm = NULL;
	k->inbox = NULL;
	k->filling = NULL;
	k->link = link_free(k->link); /* from here on no buffer is touched */
}

void conn_free(struct conn *k)
{
	link_free(k->link);
	if (k->inbox && k->inbox->conn == k)
		k->inbox->conn = NULL;
	if (k->comm && !k->inbox) {
		struct conn **p = &k->comm->peers[k->peer].out;

		while (*p && *p != k)
			p = &(*p)->peer_next;
		if (*p)
			*p = k->peer_next;
	}
	free(k->sent);
	free(k);
}

/* Leaves the communicator; the link stays until it has sent all that is queued in it. */
static void let_go(struct conn *k)
{
	k->comm = NULL;
	k->inbox = NULL;
	k->filling = NULL;
	k->has_post = false;
	k->is_lingering = true;
	k->until_ns = clock_now_ns() + LINGER_NS;
	if (k->is_held) {
		k->is_held = false;
		link_resume(k->link);
	}
	link_progress(k->link); /* the process may end right after */
}

void conn_say_abort(struct ncclComm *c, int code, const char *text)
{
	struct wire_text t = {.code = code};
	struct wire_hdr h;
	struct conn *k;

	snprintf(t.text, sizeof(t.text), "%s", text);
	wire_hdr_init(&h, WIRE_ABORT, sizeof(t));
	for (k = proxy_conns(); k; k = k->next) {
		if (k->comm != c || k->key != KEY_RING || k->is_dead)
			continue;
		if (!link_send_copy(k->link, &h, &t))
			link_progress(k->link); /* before any other connection closes */
	}
}

void conn_say_bye(struct conn *k)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_BYE, 0);
	/* after an abort nobody waits for what may still be on its way */
	h.index = atomic_load(&k->comm->abort) ? 0 : k->comm->peers[k->peer].n_out;
	link_send_copy(k->link, &h, NULL);
}

static void drop_inboxes(struct ncclComm *c)
{
	uint32_t i;

	for (i = 0; c->peers && i < c->n_ranks; i++) {
		struct inbox *in;

		c->peers[i].out = NULL;
		while ((in = c->peers[i].in)) {
			c->peers[i].in = in->next;
			while (in->stash) {
				struct stash *s = in->stash;

				in->stash = s->next;
				free(s);
			}
			free(in->posts);
			free(in);
		}
	}
}

/* After this nothing touches the users' buffers. A link that holds no user's bytes stays until it
 * has sent what is queued. */
void conn_close_data(struct ncclComm *c)
{
	struct conn *k;

	for (k = proxy_conns(); k; k = k->next) {
		if (k->comm != c)
			continue;
		if (k->is_dead || k->n_sent || k->has_post || k->filling) {
			conn_kill(k);
			continue;
		}
		if (!c->is_failed)
			conn_say_bye(k);
		let_go(k);
	}
	drop_inboxes(c);
}
