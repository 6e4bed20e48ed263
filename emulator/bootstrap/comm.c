/* See comm.h. A communicator that has failed keeps its memory until bootstrap_comm_end(), so that
 * code that finds it failed may still look at it. */
#include "bootstrap/comm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"

/* A rank has one message at a time under way, but for an all-gather among the real ranks of a node
 * and a broadcast there. Answers wait at the rank until it takes them: log2 of the ranks for a
 * barrier. */
#define CONNS_MIN 256
#define CONNS_PER_MEMBER 256

struct bootstrap *bootstrap_new(const struct bootstrap_sink *sink, void *ctx,
				int (*magic)(void *ctx, uint64_t *ret))
{
	struct bootstrap *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->sink = sink;
	b->ctx = ctx;
	b->magic = magic;
	return b;
}

void bootstrap_free(struct bootstrap *b)
{
	if (!b)
		return;
	while (b->comms)
		bootstrap_comm_free(b->comms);
	while (b->loose)
		conn_free(b->loose);
	free(b);
}

static int comm_find_members(struct bootstrap_comm *comm, struct err *err)
{
	uint32_t n = comm->places.n_ranks, k = 0;

	for (uint32_t r = 0; r < n; r++) {
		if (comm->template[r] >= n ||
		    comm->template[comm->template[r]] != comm->template[r])
			return err_set(err, EINVAL,
				       "rank %u of the communicator has template %u, which is %s",
				       r, comm->template[r],
				       comm -> template[r] >= n ? "none of its ranks" : "not real");
		comm->n_real += comm->template[r] == r;
	}
	comm->member_of = malloc(n * sizeof(*comm->member_of));
	comm->members = calloc(comm->n_real, sizeof(*comm->members));
	if (!comm->member_of || !comm->members)
		return err_set(err, ENOMEM, "no memory for a communicator of %u ranks", n);
	for (uint32_t r = 0; r < n; r++) {
		comm->member_of[r] = comm->template[r] == r ? k : COMM_NO_MEMBER;
		if (comm->template[r] == r)
			comm->members[k++].rank = r;
	}
	return 0;
}

static void comm_freep(struct bootstrap_comm **comm)
{
	if (*comm) {
		(*comm)->node = (*comm)->template = NULL; /* the caller's again */
		bootstrap_comm_free(*comm);
	}
}

int comm_make(struct bootstrap *all, const struct nccl_records *records, uint32_t n_ranks,
	      uint32_t *node, uint32_t *template, struct bootstrap_comm **ret, struct err *err)
{
	struct bootstrap_comm *comm CLEANUP(comm_freep) = calloc(1, sizeof(*comm));
	char sentence[ERR_TEXT_MAX] = "";
	int r;

	if (!comm)
		return err_set(err, ENOMEM, "no memory for a communicator");
	comm->all = all;
	comm->records = records;
	comm->node = node;
	comm->template = template;
	comm->places =
		(struct rewrite_places){.n_ranks = n_ranks, .node = node, .template = template};
	DL_APPEND(all->comms, comm);
	r = comm_find_members(comm, err);
	if (r < 0)
		return r;
	r = rewrite_places_init(&comm->places, sentence, sizeof(sentence));
	if (r < 0)
		return err_set(err, -r, "%s",
			       r == -ENOMEM ? "no memory for a communicator" : sentence);
	*ret = steal_ptr(comm);
	return 0;
}

static void gathers_free(struct bootstrap_comm *comm)
{
	struct gather *g, *next;

	DL_FOREACH_SAFE(comm->gathers, g, next) {
		free(g->records);
		free(g->color);
		free(g->key);
		free(g);
	}
	comm->gathers = NULL;
}

void bootstrap_comm_free(struct bootstrap_comm *comm)
{
	if (!comm)
		return;
	DL_DELETE(comm->all->comms, comm);
	while (comm->conns)
		conn_free(comm->conns);
	gathers_free(comm);
	rewrite_places_deinit(&comm->places);
	free(comm->node);
	free(comm->template);
	free(comm->member_of);
	free(comm->members);
	free(comm->magics);
	free(comm->real);
	free(comm->color);
	free(comm);
}

struct bootstrap_comm *bootstrap_comm_find(struct bootstrap *all, uint64_t magic, uint32_t door)
{
	struct bootstrap_comm *comm;

	DL_FOREACH(all->comms, comm) {
		if (!comm->is_over && comm->has_magic && comm->magics[0] == magic &&
		    comm->door == door)
			return comm;
	}
	return NULL;
}

struct bootstrap_comm *comm_find_root(struct bootstrap *all, uint64_t magic, uint32_t *ret_root)
{
	struct bootstrap_comm *comm;

	DL_FOREACH(all->comms, comm) {
		for (uint32_t i = 0; i < comm->n_roots && !comm->is_over; i++) {
			if (comm->magics[i] == magic) {
				*ret_root = i;
				return comm;
			}
		}
	}
	return NULL;
}

uint32_t comm_ranks(const struct bootstrap_comm *comm)
{
	return comm->places.n_ranks;
}

uint64_t comm_magic(const struct bootstrap_comm *comm)
{
	return comm->magics[0];
}

struct member *comm_real_member(const struct bootstrap_comm *comm, int64_t rank)
{
	if (rank < 0 || rank >= comm->places.n_ranks || comm->member_of[rank] == COMM_NO_MEMBER)
		return NULL;
	return &comm->members[comm->member_of[rank]];
}

uint32_t comm_member_number(const struct bootstrap_comm *comm, const struct member *m)
{
	return (uint32_t)(m - comm->members);
}

bool comm_is_made(const struct bootstrap_comm *comm)
{
	return comm->places.n_ranks == 1 || comm->stage == comm->records->n_contacts + 2u;
}

static void comm_close(struct bootstrap_comm *comm)
{
	struct bootstrap_conn *c;

	comm->is_over = true;
	DL_FOREACH(comm->conns, c) {
		conn_hang_up(c, true);
	}
}

/* A child that not all members have joined cannot be joined any more when its parent has ended, and
 * its members wait for ever in the parent when it has. A parent has been joined by all its own
 * members, so this goes no further. */
static void comm_part(struct bootstrap_comm *comm)
{
	struct bootstrap_comm *child, *parent = comm->parent;

	comm->parent = NULL;
	for (uint32_t k = 0; parent && k < parent->n_real; k++) {
		if (parent->members[k].child == comm)
			parent->members[k].child = NULL;
	}
	if (parent)
		comm_fail(
			parent,
			"a communicator that was split from it has ended before all ranks had joined");
	DL_FOREACH(comm->all->comms, child) {
		if (child->parent == comm)
			comm_fail(
				child,
				"the communicator that it was split from has ended before all ranks had joined");
	}
}

void comm_fail(struct bootstrap_comm *comm, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	if (comm->is_over)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	comm_close(comm);
	comm->all->sink->failed(comm->all->ctx, comm, text);
	comm_part(comm);
}

void comm_no_memory(struct bootstrap_comm *comm)
{
	comm_fail(comm, "no memory for NCCL's bootstrap among %u ranks", comm_ranks(comm));
}

void comm_over(struct bootstrap_comm *comm)
{
	if (comm->is_over)
		return;
	comm_close(comm);
	comm_part(comm);
}

void bootstrap_comm_end(struct bootstrap_comm *comm)
{
	if (!comm)
		return;
	comm_over(comm);
	while (comm->conns) {
		struct bootstrap_conn *c = comm->conns;

		c->comm = NULL;
		conn_move(c, &comm->all->loose);
	}
	bootstrap_comm_free(comm);
}

uint32_t bootstrap_comm_size(const struct bootstrap_comm *comm)
{
	return comm_ranks(comm);
}

uint64_t bootstrap_comm_transports(const struct bootstrap_comm *comm)
{
	return comm->transports;
}

/* --- its connections --------------------------------------------------------------- */

int comm_attach(struct bootstrap_comm *comm, struct bootstrap_conn *c)
{
	if (comm->n_conns >= CONNS_MIN + (uint64_t)CONNS_PER_MEMBER * comm->n_real) {
		comm_fail(comm,
			  "its %u real ranks have %u connections at once, more than NCCL makes",
			  comm->n_real, comm->n_conns);
		return -EMFILE;
	}
	c->comm = comm;
	comm->n_conns++;
	conn_move(c, &comm->conns);
	return 0;
}

void bootstrap_conn_closed(struct bootstrap_conn *c)
{
	if (c->comm)
		c->comm->n_conns--;
	conn_free(c);
}

struct bootstrap_conn *comm_dial_begin(struct bootstrap_comm *comm, const struct conn_kind *kind,
				       const struct member *m, uint64_t magic)
{
	struct bootstrap *all = comm->all;
	struct bootstrap_conn *c = conn_new(all, all->sink, all->ctx, kind, &all->loose);

	if (!c || conn_put_hello(c, magic) < 0) {
		conn_free(c);
		comm_no_memory(comm);
		return NULL;
	}
	if (comm_attach(comm, c) < 0) {
		conn_free(c);
		return NULL;
	}
	c->member = comm_member_number(comm, m);
	return c;
}

int comm_dial(struct bootstrap_comm *comm, struct bootstrap_conn *c,
	      const uint8_t address[NCCL_ADDRESS_BYTES])
{
	struct err err = {""};

	if (comm->is_over) {
		bootstrap_conn_closed(c);
		return -1;
	}
	c->is_known = true;
	if (comm->all->sink->dial(comm->all->ctx, c, address, &err) < 0) {
		bootstrap_conn_closed(c);
		comm_fail(comm, "%s", err.text);
		return -1;
	}
	return 0;
}
