/* See calls.h. */
#include "nboxd/store/gloo/calls.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "nboxd/loop/warn.h"

#define OPS_KEPT 64         /* of a group: older ones are over */
#define OUT_MAX (64u << 20) /* for one that does not read */
#define RING_ASKS_MAX 4     /* of a connection in one all-gather; gloo has two under way */

void gloo_op_free(struct gloo_group *g, struct gloo_op *op)
{
	struct gloo_ask *ask, *next;

	DL_DELETE(g->ops, op);
	g->n_ops--;
	DL_FOREACH_SAFE(op->asks, ask, next)
		free(ask);
	buffer_deinit(&op->content);
	gloo_ring_deinit(&op->ring);
	free(op->come);
	free(op);
}

/* --- answers ------------------------------------------------------------------------------ */

bool gloo_is_real(void *ctx, uint32_t rank)
{
	const struct gloo_group *g = ctx;
	const struct config *c = g->env->config;

	for (size_t i = 0; g->is_default && i < c->n_real; i++)
		if (c->real[i] == rank)
			return true;
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i].rank == rank)
			return true;
	return false;
}

struct barrier_ctx {
	struct gloo_group *group;
	const struct gloo_op *op;
};

static bool barrier_is_real(void *ctx, uint32_t rank)
{
	return gloo_is_real(((struct barrier_ctx *)ctx)->group, rank);
}

static bool barrier_has_come(void *ctx, uint32_t from, uint32_t to)
{
	const struct gloo_op *op = ((struct barrier_ctx *)ctx)->op;

	for (size_t i = 0; i < op->n_come; i++)
		if (op->come[i].from == from && op->come[i].to == to)
			return true;
	return false;
}

/* The members, if the job has said them; else NULL. */
static const struct membership *members_of(const struct gloo_group *g)
{
	return g->env->group_members(g->env->ctx,
				     (struct store_bytes){g->key + g->group_at, g->n_group});
}

/* The group's size, from a barrier or an all-gather: rank 0 receives first from the last rank, and
 * the last rank sends first to rank 0. Else the job's own list may say it. */
static void learn_size(struct gloo_group *g, uint32_t real, uint32_t peer, bool is_receiver)
{
	uint32_t highest = 0;

	if (g->n_ranks)
		return;
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i].rank > highest)
			highest = g->real[i].rank;
	if (is_receiver && real == 0)
		g->n_ranks = peer + 1;
	else if (!is_receiver && real == highest && peer == 0)
		g->n_ranks = real + 1;
	if (!g->n_ranks && members_of(g))
		g->n_ranks = members_of(g)->n_ranks;
	if (g->n_ranks)
		log_info("store: %s has %u ranks", g->name, g->n_ranks);
}

void gloo_conn_end(struct gloo_conn *c)
{
	shutdown(bufferevent_getfd(c->stream), SHUT_RDWR);
}

static int say(struct gloo_conn *c, enum gloo_opcode opcode, uint64_t slot, uint64_t length,
	       const void *body)
{
	struct gloo_frame f = {.n_bytes = sizeof(f) + (body ? length : 0),
			       .opcode = opcode,
			       .slot = slot,
			       .length = length};

	if (evbuffer_get_length(bufferevent_get_output(c->stream)) + f.n_bytes > OUT_MAX)
		return -ENOBUFS; /* asks on and on, and does not read */
	if (bufferevent_write(c->stream, &f, sizeof(f)) < 0 ||
	    (body && bufferevent_write(c->stream, body, length) < 0))
		return -ENOMEM;
	return 0;
}

static struct gloo_ranks ranks_of(const struct gloo_group *g)
{
	const struct config *c = g->env->config;
	const struct membership *told = members_of(g);
	struct gloo_ranks ranks = {
		.members = {.n_ranks = g->n_ranks, .stride = 1},
		.gpus_per_node = c->topology.gpus_per_node,
		.classes = c->classes.of,
		.real = g->is_default ? c->real : g->ranks,
		.n_real = (uint32_t)(g->is_default ? c->n_real : g->n_real),
	};

	if (g->n_ranks == c->world)
		return ranks;
	if (told && told->n_ranks == g->n_ranks && ranks.real[ranks.n_real - 1] < g->n_ranks)
		ranks.members = *told;
	else /* no local index is known, nor class: all real members take turns */
		ranks = (struct gloo_ranks){ranks.members, 1, NULL, ranks.real, ranks.n_real};
	return ranks;
}

/* Return: 1 answered; 0 not yet; negative errno. */
static int answer(struct gloo_group *g, struct gloo_op *op, struct gloo_ask *ask)
{
	struct barrier_ctx ctx = {g, op};
	struct gloo_barrier b = {g->n_ranks, barrier_is_real, barrier_has_come, &ctx};
	struct gloo_ranks ranks = ranks_of(g);
	struct gloo_conn *c = ask->conn;
	const uint8_t *part = NULL;
	int r = 1;

	if (gloo_kind(op->slot) == GLOO_ALLGATHER) {
		r = g->n_ranks ? gloo_ring_get(&op->ring, &ranks, c->real_rank, ask->length, &part)
			       : 0;
	} else if (gloo_kind(op->slot) == GLOO_BROADCAST) {
		if (!op->has_content)
			return 0;
		if (op->content.n != ask->length)
			return -EPROTO;
	} else if (g->n_ranks) {
		r = gloo_barrier_may_send(&b, c->virtual_rank, c->real_rank);
	} else {
		r = g->n_real == 1; /* nobody to wait for */
	}
	if (r <= 0)
		return r;
	r = say(c, GLOO_SEND_READY, op->slot, ask->length, NULL);
	if (r == 0)
		r = say(c, GLOO_DATA, op->slot, ask->length,
			part              ? part
			: op->has_content ? op->content.data
					  : (const uint8_t *)"");
	return r < 0 ? r : 1;
}

/* All that waits in @op and can be answered now. Nobody is freed here: a connection with a
 * trouble is shut down, and its end is seen by libevent. */
static void answer_all(struct gloo_group *g, struct gloo_op *op)
{
	struct gloo_ask *ask, *next;

	DL_FOREACH_SAFE(op->asks, ask, next) {
		struct gloo_conn *c = ask->conn;
		int r = answer(g, op, ask);

		if (r == 0)
			continue;
		DL_DELETE(op->asks, ask);
		free(ask);
		if (r < 0)
			gloo_conn_end(c);
	}
}

static struct gloo_op *op_get(struct gloo_group *g, uint64_t slot)
{
	struct gloo_op *op;

	DL_FOREACH(g->ops, op)
		if (op->slot == slot)
			return op;
	if (g->n_ops == OPS_KEPT)
		gloo_op_free(g, g->ops);
	op = calloc(1, sizeof(*op));
	if (!op)
		return NULL;
	op->slot = slot;
	DL_APPEND(g->ops, op);
	g->n_ops++;
	return op;
}

/* --- frames ---------------------------------------------------------------------------------- */

static int refuse(struct gloo_conn *c, const char *what)
{
	struct gloo_group *g = c->group;

	if (!g->is_told)
		warn_run(
			"store: rank %u of %s calls %s with rank %u, which is virtual: gloo "
			"calls with virtual ranks can be barriers, all_gather (with data mirror), and broadcasts and "
			"scatters from a real rank, for the values of others would be needed. Use backend \"nccl\" for this group; the "
			"connection is closed",
			c->real_rank, g->name, what, c->virtual_rank);
	g->is_told = true;
	return -ENOTSUP;
}

static int on_data(struct gloo_conn *c, struct gloo_op *op, const void *body, uint64_t length)
{
	struct gloo_ranks ranks = ranks_of(c->group);
	struct gloo_pair *come;

	if (gloo_kind(op->slot) == GLOO_SCATTER)
		return 0; /* a virtual rank's part, which has no use */
	if (gloo_kind(op->slot) == GLOO_ALLGATHER)
		return c->group->n_ranks
			       ? gloo_ring_put(&op->ring, &ranks, c->real_rank, body, length)
			       : -ENOTSUP;
	if (gloo_kind(op->slot) == GLOO_BROADCAST) {
		if (!op->has_content && buffer_add(&op->content, body, length) < 0)
			return -ENOMEM;
		op->has_content = true;
		return 0;
	}
	if (barrier_has_come(&(struct barrier_ctx){c->group, op}, c->real_rank, c->virtual_rank))
		return -EPROTO; /* a barrier has one message of each pair */
	come = realloc(op->come, (op->n_come + 1) * sizeof(*come));
	if (!come)
		return -ENOMEM;
	op->come = come;
	come[op->n_come++] = (struct gloo_pair){c->real_rank, c->virtual_rank};
	return 0;
}

static int on_recv_ready(struct gloo_conn *c, struct gloo_op *op, uint64_t length)
{
	uint32_t n = 0, most = gloo_kind(op->slot) == GLOO_ALLGATHER ? RING_ASKS_MAX : 1;
	struct gloo_ask *ask;

	DL_FOREACH(op->asks, ask)
		n += ask->conn == c;
	if (n == most)
		return -EPROTO; /* as above, and one receives once in a broadcast */
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	*ask = (struct gloo_ask){.conn = c, .length = length, .since_ns = clock_now_ns()};
	DL_APPEND(op->asks, ask);
	return 0;
}

/* In an all-gather virtual ranks send what their templates do: that is mirror, no other data
 * policy. */
static bool is_played_kind(const struct gloo_group *g, enum gloo_kind kind)
{
	return kind == GLOO_BARRIER || kind == GLOO_BROADCAST || kind == GLOO_SCATTER ||
	       (kind == GLOO_ALLGATHER && g->env->config->data == DATA_MIRROR);
}

/* Return: 0; negative errno: the connection is over. */
int gloo_on_frame(struct gloo_conn *c, const struct gloo_frame *f, const void *body)
{
	enum gloo_kind kind = gloo_kind(f->slot);
	struct gloo_ranks ranks;
	struct gloo_op *op;
	int r = 0;

	if (!is_played_kind(c->group, kind) ||
	    (kind == GLOO_SCATTER && f->opcode == GLOO_RECV_READY))
		return refuse(c, gloo_kind_name(kind));
	if (kind == GLOO_BARRIER && f->length) /* its messages are empty, and so are the answers */
		return -EPROTO;
	op = op_get(c->group, f->slot);
	if (!op)
		return -ENOMEM;
	if ((kind == GLOO_BARRIER || kind == GLOO_ALLGATHER) && f->opcode != GLOO_DATA)
		learn_size(c->group, c->real_rank, c->virtual_rank, f->opcode == GLOO_RECV_READY);
	if (f->opcode == GLOO_SEND_READY)
		r = say(c, GLOO_RECV_READY, f->slot, f->length, NULL);
	else if (f->opcode == GLOO_RECV_READY)
		r = on_recv_ready(c, op, f->length);
	else
		r = on_data(c, op, body, f->length);
	if (r == 0)
		answer_all(c->group, op);
	ranks = ranks_of(c->group);
	if (r == 0 && kind == GLOO_ALLGATHER && ranks.members.n_ranks &&
	    gloo_ring_is_over(&op->ring, &ranks))
		gloo_op_free(c->group, op); /* what it keeps may be much */
	return r;
}
