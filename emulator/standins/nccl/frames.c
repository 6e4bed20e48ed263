/* What arrives on connections; and how a connection is opened and given to its communicator. The
 * listening rank keeps a connection parked until it has made the communicator that the connection
 * names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "links/endpoint.h"
#include "standins/nccl/impl.h"

#define CONNECT_MS 60000 /* the peer may be an emulated machine, or a busy one */

/* --- frames that arrive ---------------------------------------------------------- */

static void fail_mismatch(struct ncclComm *c, uint32_t peer, const struct wire_hdr *h,
			  uint64_t expected)
{
	char ours[160], theirs[80], who[128];

	op_describe(c->run->op, ours, sizeof(ours));
	signature_describe(h->flags, theirs, sizeof(theirs));
	comm_fail(c, ncclInvalidUsage,
		  "mismatched calls: %s sent a message of %llu bytes of its %s, where rank %u, in "
		  "%s, expects %llu bytes",
		  peer_name(c, peer, who), (unsigned long long)h->body_bytes, theirs, c->rank, ours,
		  (unsigned long long)expected);
}

static int find_post(const struct inbox *in, const struct wire_hdr *h)
{
	uint32_t i;

	for (i = 0; i < in->n_posts; i++) {
		if (in->posts[i].index == h->index && in->posts[i].seq == h->seq)
			return (int)i;
	}
	return -1;
}

static void remove_post(struct inbox *in, uint32_t i)
{
	memmove(&in->posts[i], &in->posts[i + 1], (in->n_posts - i - 1) * sizeof(*in->posts));
	in->n_posts--;
}

static int hold(struct conn *k)
{
	k->is_held = true;
	return LINK_HOLD;
}

/* A message of a call whose receive is not posted, on a link where other receives wait: it is
 * kept aside, so that it does not hold them up. */
static int set_aside(struct conn *k, const struct wire_hdr *h, void **ret_body)
{
	struct stash *s = malloc(sizeof(*s) + h->body_bytes), **p;

	if (!s)
		return -ENOMEM;
	s->next = NULL;
	s->hdr = *h;
	s->is_whole = false;
	for (p = &k->inbox->stash; *p;)
		p = &(*p)->next;
	*p = s;
	k->filling = s;
	*ret_body = h->body_bytes ? s->body : NULL;
	return 0;
}

static int message_header(struct conn *k, const struct wire_hdr *h, void **ret_body)
{
	struct ncclComm *c = k->comm;
	struct inbox *in = k->inbox;
	const struct run *r = c->run;
	bool is_p2p = k->key & KEY_P2P;
	int i;

	if (!in || k->key == KEY_RING)
		return -EPROTO;
	if (c->is_failed || c->is_lost)
		return -ECANCELED;
	if (k->key == KEY_RMA) {
		i = h->body_bytes ? window_place(c, h->seq, h->index, h->body_bytes, ret_body) : 0;
		return i == LINK_HOLD ? hold(k) : i;
	}
	i = find_post(in, h);
	if (i < 0) {
		if (is_p2p)
			return in->n_posts ? set_aside(k, h, ret_body) : hold(k);
		if (!r || r->op->kind == COLL_SENDRECV || h->seq > r->seq)
			return hold(k);
		if (h->seq == r->seq && h->comm == r->op->signature)
			return hold(k); /* due later in this op */
		fail_mismatch(c, k->peer, h, 0);
		return -EINVAL;
	}
	if (h->body_bytes != in->posts[i].bytes || (!is_p2p && h->comm != r->op->signature)) {
		fail_mismatch(c, k->peer, h, in->posts[i].bytes);
		return -EINVAL;
	}
	k->filling_post = in->posts[i];
	k->has_post = true;
	remove_post(in, (uint32_t)i);
	*ret_body = k->filling_post.dst;
	return 0;
}

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct conn *k = owner;

	(void)l;
	if (k->is_lingering)
		return 0; /* thrown away */
	if (!k->comm)
		return !k->is_parked          ? -EPROTO
		       : h->type == WIRE_CONN ? 0
		       : k->hello.n_ranks     ? hold(k)
					      : -EPROTO;
	switch (h->type) {
	case WIRE_MESSAGE:
		return message_header(k, h, ret_body);
	case WIRE_BOOT:
		return k->key == KEY_RING && h->body_bytes == sizeof(struct gather_record)
			       ? 0
			       : -EPROTO;
	case WIRE_BYE:
	case WIRE_ABORT:
		return 0;
	default:
		return -EPROTO;
	}
}

/* The first frame of a connection that came in says which communicator it belongs to. */
static int introduce(struct conn *k, const struct wire_conn *hello)
{
	struct ncclComm *c;
	bool is_gone;

	if (k->hello.n_ranks || !hello->n_ranks || hello->src >= hello->n_ranks ||
	    hello->dst >= hello->n_ranks || hello->lane > KEY_RING)
		return -EPROTO;
	k->hello = *hello;
	c = proxy_find_comm(hello->magic, hello->dst, &is_gone);
	if (is_gone)
		return -ECONNREFUSED;
	if (!c)
		return 0; /* stays parked until somebody here makes that communicator */
	frames_attach(c);
	return k->comm ? 0 : -EPROTO;
}

static void remote_abort(struct conn *k, const struct wire_text *t)
{
	struct ncclComm *c = k->comm;
	char who[128];

	/* A peer that aborts while nothing runs here may only be leaving: an op that needs it
	 * later fails. */
	if (t->code == ECANCELED && !c->run) {
		k->is_bye = true;
		peer_left(c, k->peer, 0);
		return;
	}
	comm_fail(c, t->code == EINVAL ? ncclInvalidUsage : ncclRemoteError, "%s: %.300s",
		  peer_name(c, k->peer, who), t->text);
}

/* The player cannot go on. When it met a lost connection, an abort that explains the loss may be
 * on its way. */
static void player_failed(struct ncclComm *c, int code, const struct err *err)
{
	if (code == -ECONNRESET || code == -EPIPE)
		peer_lost(c, PEER_SILENT, ncclRemoteError, err->text);
	else
		comm_fail(c, ncclInternalError, "%s", err->text);
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct conn *k = owner;
	struct post done;
	struct err err;
	int r;

	(void)l;
	if (k->is_lingering)
		return 0;
	if (h->type != WIRE_MESSAGE && wire_body_check(h, body, &err))
		return -EPROTO;
	switch (h->type) {
	case WIRE_CONN:
		return k->comm ? -EPROTO : introduce(k, body);
	case WIRE_BOOT:
		return gather_received(k->comm, h->seq, h->rank, body);
	case WIRE_BYE:
		k->is_bye = true;
		peer_left(k->comm, k->peer, h->index);
		return 0;
	case WIRE_ABORT:
		remote_abort(k, body);
		return 0;
	default:
		break;
	}
	if (k->key == KEY_RMA) {
		window_signal(k->comm, k->peer);
		return 0;
	}
	if (k->filling) {
		k->filling->is_whole = true;
		k->filling = NULL;
		return 0;
	}
	if (k->comm->is_failed || k->comm->is_lost)
		return 0;
	if (!k->has_post || !k->comm->run)
		return -EPROTO;
	done = k->filling_post;
	k->has_post = false;
	r = player_received(k->comm->run->player, k->peer, (uint16_t)done.lane, done.index, &err);
	if (r)
		player_failed(k->comm, r, &err);
	return 0;
}

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	struct conn *k = owner;
	struct sent s;
	struct err err;
	int r;

	(void)l;
	(void)cookie;
	if (k->is_lingering || !k->comm || !k->n_sent)
		return;
	s = k->sent[k->sent_first];
	k->sent_first = (k->sent_first + 1) % k->sent_size;
	k->n_sent--;
	if (!k->comm->run || k->comm->is_failed || k->comm->is_lost)
		return;
	r = player_sent(k->comm->run->player, k->peer, (uint16_t)s.lane, s.index, &err);
	if (r)
		player_failed(k->comm, r, &err);
}

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct conn *k = owner;
	bool is_needed = k->n_sent || (k->inbox && k->inbox->n_posts);
	char who[128], text[ERR_TEXT_MAX];

	(void)l;
	k->is_dead = true;
	if (!k->comm || k->is_lingering)
		return;
	if (k->key == KEY_WATCH && !k->inbox)
		peer_unwatched(k->comm, k->peer);
	if ((k->is_bye || (k->key == KEY_WATCH && !k->inbox)) && !is_needed) {
		peer_look_for_orphans(k->comm, k->peer);
		return;
	}
	/* The peer may have said why on the control ring: peer_judge_lost() reads that first. */
	snprintf(text, sizeof(text), "%s %s: %.300s",
		 k->is_bye ? "this op needs a rank that has left:" : "lost the connection to",
		 peer_name(k->comm, k->peer, who), why);
	peer_lost(k->comm, k->is_bye ? PEER_SILENT : k->peer,
		  code == -EPROTO ? ncclInternalError : ncclRemoteError, text);
}

const struct link_events frame_events = {on_header, on_frame, on_sent, on_closed};

void frames_attach(struct ncclComm *c)
{
	struct conn *k;

	for (k = proxy_conns(); k; k = k->next) {
		if (!k->is_parked || k->is_dead || !k->hello.n_ranks || k->hello.dst != c->rank ||
		    memcmp(k->hello.magic, c->magic, 16))
			continue;
		k->is_parked = false;
		k->comm = c;
		k->peer = k->hello.src;
		k->key = (uint16_t)k->hello.lane;
		if (k->hello.n_ranks != c->n_ranks) {
			k->comm = NULL;
			k->is_dead = true;
			continue;
		}
		k->inbox = conn_inbox(c, k->peer, k->key);
		if (!k->inbox || k->inbox->conn) {
			k->inbox = NULL; /* a second one of the same name is not ours */
			k->comm = NULL;
			k->is_dead = true;
			continue;
		}
		k->inbox->conn = k;
		c->peers[k->peer].n_in++;
		if (k->is_held) {
			k->is_held = false;
			link_resume(k->link);
		}
		peer_look_for_orphans(c, k->peer);
	}
}

struct adopt {
	struct conn *conn;
	struct ncclComm *comm;
};

static void do_adopt(void *arg)
{
	struct conn *k = arg;
	struct ncclComm *c = k->comm;

	if (c->is_attached && !c->is_closed && !k->link)
		peer_unwatched(c, k->peer);
	if (!c->is_attached || c->is_closed || !k->link) {
		conn_free(k);
		return;
	}
	proxy_add_conn(k);
	c->peers[k->peer].n_out++;
	k->peer_next = c->peers[k->peer].out;
	c->peers[k->peer].out = k;
}

static bool note_key(struct peer *p, uint16_t key, ncclResult_t *ret)
{
	uint32_t i;
	void *keys;

	for (i = 0; i < p->n_keys; i++) {
		if (p->keys[i] == key)
			return true;
	}
	keys = realloc(p->keys, (p->n_keys + 1) * sizeof(*p->keys));
	if (!keys) {
		*ret = fail(ncclSystemError, "out of memory");
		return true;
	}
	p->keys = keys;
	p->keys[p->n_keys++] = key;
	return false;
}

static ncclResult_t make_conn(struct ncclComm *c, uint32_t peer, uint16_t key)
{
	const struct peer *p = &c->peers[peer];
	const char *addr = p->is_near ? p->info.unix_addr : p->info.tcp_addr;
	struct wire_conn hello = {.src = c->rank, .dst = peer, .lane = key, .n_ranks = c->n_ranks};
	struct conn *k = calloc(1, sizeof(*k));
	struct wire_hdr h;
	struct err err = {{0}};
	int r;

	if (!k)
		return fail(ncclSystemError, "out of memory");
	k->comm = c;
	k->peer = peer;
	k->key = key;
	r = link_connect(addr, CONNECT_MS, &frame_events, k, &k->link, &err);
	if (!r) {
		link_lends_passing(
			k->link); /* the user's buffers, which he may free after the op */
		memcpy(hello.magic, c->magic, 16);
		wire_hdr_init(&h, WIRE_CONN, sizeof(hello));
		r = link_send_copy(k->link, &h, &hello);
	}
	if (r && key == KEY_WATCH) {
		k->link = link_free(k->link);
		r = 0; /* do_adopt() sees to it */
	}
	if (!r)
		r = proxy_post(do_adopt, k);
	if (r) {
		k->comm = NULL; /* it is in no list, and the lists are the proxy's */
		conn_free(k);
		return fail(ncclRemoteError, "cannot reach rank %u (%s, process %u): %s", peer,
			    p->info.host, p->info.pid, err.text[0] ? err.text : strerror(-r));
	}
	debug_info("rank %u -> rank %u [%u] by %s", c->rank, peer, key, addr);
	return ncclSuccess;
}

ncclResult_t conn_open(struct ncclComm *c, uint32_t peer, uint16_t key)
{
	ncclResult_t r = ncclSuccess;

	pthread_mutex_lock(&c->connect_lock);
	if (!note_key(&c->peers[peer], key, &r))
		r = make_conn(c, peer, key);
	pthread_mutex_unlock(&c->connect_lock);
	return r;
}

/* The connection from the left neighbour in the control ring tells the same. */
ncclResult_t conn_watch(struct ncclComm *c, uint32_t peer)
{
	ncclResult_t r = ncclSuccess;

	if ((peer + 1) % c->n_ranks == c->rank)
		return ncclSuccess;
	pthread_mutex_lock(&c->connect_lock);
	if (!c->peers[peer].n_keys && !note_key(&c->peers[peer], KEY_WATCH, &r))
		r = make_conn(c, peer, KEY_WATCH);
	pthread_mutex_unlock(&c->connect_lock);
	return r;
}
