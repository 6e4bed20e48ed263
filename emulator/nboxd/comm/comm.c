/* See comm.h. */
#include "nboxd/comm/comm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/plain.h"
#include "engine/record-write.h"
#include "nboxd/job/notes.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "op/ops.h"

#define COMMS_MAX 65536
#define AXES_NAME_MAX 128
#define HOW_MAX 192

_Static_assert(COLL_KINDS <= 16, "wire_comm_ready.algo holds every kind");

struct comm *comm_find(struct comms *comms, uint32_t number)
{
	struct comm *c;

	HASH_FIND(hh, comms->by_number, &number, sizeof(number), c);
	return c;
}

void comm_policies(const struct comm *c, uint8_t ret[COLL_KINDS])
{
	const struct config *config = c->comms->config;
	const struct cluster *cluster = c->comms->cluster;
	char axes[AXES_NAME_MAX];

	members_axes_name(cluster->layouts, cluster->n_layouts, c->members.axes, axes,
			  sizeof(axes));
	data_for_resolve(config->data_for, config->n_data_for, config->data, axes,
			 c->n_ranks == config->world, ret);
}

static int tell_ready(struct comm *c, const struct comm_entry *entries)
{
	const struct config *config = c->comms->config;
	const struct cluster *cluster = c->comms->cluster;
	const struct membership *map = &c->members.map;
	size_t n_list = map->table ? map->n_ranks * sizeof(*map->table) : 0;
	uint32_t n_process = (uint32_t)bitmap_count(&c->has_process), k = 0;
	size_t n = sizeof(struct wire_comm_ready) + n_process * sizeof(struct wire_member) + n_list;
	CLEANUP(freep) char *body = malloc(n);
	struct wire_comm_ready m = {
		.n_ranks = c->n_ranks,
		.n_real = n_process,
		.is_guess = c->members.sure == MEMBERS_GUESSED,
		.gpus_per_node = cluster->topology->gpus_per_node,
		.ranks_per_node = c->ranks_per_node,
		.channels = config->channels,
		.base = map->base,
		.stride = map->stride,
		.chunk_bytes = config->chunk_bytes,
	};
	struct wire_hdr h;

	if (!body)
		return -ENOMEM;
	memcpy(m.algo, config->algo, sizeof(config->algo));
	comm_policies(c, m.data);
	for (uint32_t i = 0; i < c->n_real; i++) {
		struct wire_member member = {c->real[i].rank, c->real[i].world_rank};

		if (!c->real[i].is_recorded)
			memcpy(body + sizeof(m) + k++ * sizeof(member), &member, sizeof(member));
	}
	if (n_list)
		memcpy(body + n - n_list, map->table, n_list);
	wire_hdr_init(&h, WIRE_COMM_READY, n);
	h.comm = c->number;
	k = 0;
	for (uint32_t i = 0; i < c->n_real; i++) {
		if (c->real[i].is_recorded)
			continue;
		m.cookie = entries[k].cookie;
		m.rank = h.rank = c->real[i].rank;
		memcpy(body, &m, sizeof(m));
		if (entries[k++].worker)
			worker_send(entries[k - 1].worker, &h, body);
	}
	return 0;
}

/* Its row in the record; without memory the row lacks the list of the real members. */
static void write_row(const struct comm *c)
{
	const struct membership *map = &c->members.map;
	CLEANUP(freep) struct record_member *real = calloc(c->n_real, sizeof(*real));
	const struct record_comm row = {
		.number = c->number,
		.parent = c->parent,
		.n_ranks = c->n_ranks,
		.base = map->base,
		.stride = map->stride,
		.source = c->members.source,
		.sure = c->members.sure,
		.axes = c->members.axes,
		.n_members = map->table ? map->n_ranks : 0,
		.n_real = real ? c->n_real : 0,
		.members = map->table,
		.real = real,
	};

	for (uint32_t i = 0; i < row.n_real; i++)
		real[i] = (struct record_member){c->real[i].rank, c->real[i].world_rank};
	record_comm(c->comms->notes->record, &row);
}

char *comm_how(const struct comm *c, char *buf, size_t size)
{
	const struct cluster *cluster = c->comms->cluster;
	char axes[AXES_NAME_MAX];

	members_axes_name(cluster->layouts, cluster->n_layouts, c->members.axes, axes,
			  sizeof(axes));
	snprintf(buf, size, "%s, %s%s%s", members_source_name(c->members.source),
		 members_sure_name(c->members.sure), axes[0] ? ", " : "", axes);
	return buf;
}

static void comm_log(const struct comm *c)
{
	const struct membership *m = &c->members.map;
	char how[HOW_MAX];

	comm_how(c, how, sizeof(how));
	if (m->table)
		log_info("communicator %u: %u ranks, %u real, world ranks %u, %u, ... %u (%s)",
			 c->number, c->n_ranks, c->n_real, m->table[0],
			 m->table[m->n_ranks > 1 ? 1 : 0], m->table[m->n_ranks - 1], how);
	else
		log_info("communicator %u: %u ranks, %u real, world rank = %u + %u x rank (%s)",
			 c->number, c->n_ranks, c->n_real, m->base, m->stride, how);
}

/* The layout is believed only where nothing else is known; when both are, they should agree. */
static void check_layout(const struct comm *c)
{
	const struct cluster *cluster = c->comms->cluster;
	CLEANUP(freep) struct wire_member *known = NULL;
	char how[HOW_MAX];
	size_t n = 0;

	if (cluster->n_layouts == 0 || c->n_real == c->n_ranks)
		return;
	known = calloc(c->n_real, sizeof(*known));
	if (!known)
		return; /* only a warning is lost */
	for (uint32_t i = 0; i < c->n_real; i++)
		if (!c->real[i].is_recorded)
			known[n++] = (struct wire_member){c->real[i].rank, c->real[i].world_rank};
	if (members_differ_from_layout(cluster, &c->members, known, n))
		warn_run("communicator %u has %u ranks: world ranks %u, %u, ... (%s); the "
			 "declared layout has a group that would fit as well, with other "
			 "ranks: check layout",
			 c->number, c->n_ranks, membership_world(&c->members.map, 0),
			 membership_world(&c->members.map, c->n_ranks > 1),
			 comm_how(c, how, sizeof(how)));
}

/* Adds the members without a process to the @n in @known, and sorts all by rank. Return: how many
 * there are. */
static size_t add_recorded(const struct ops *ops, const struct membership *m,
			   struct wire_member *known, size_t n)
{
	for (size_t i = 0; ops->recorded && i < ops->cluster->n_real; i++) {
		uint32_t world_rank = ops->cluster->real[i];
		int64_t rank = membership_rank(m, world_rank);

		if (rank >= 0 && bitmap_test(ops->recorded, world_rank))
			known[n++] = (struct wire_member){(uint32_t)rank, world_rank};
	}
	members_sort(known, n);
	return n;
}

int comm_new(struct comms *comms, struct members *members, const struct comm_entry *entries,
	     const uint32_t *ranks, size_t n, const uint8_t *id, uint32_t parent, struct comm **ret,
	     struct err *err)
{
	size_t n_most = n + comms->ops->cluster->n_real, n_known = n, k = 0;
	CLEANUP(freep) struct wire_member *known = calloc(n_most, sizeof(*known));
	struct comm *c;

	if (comms->n >= COMMS_MAX)
		return err_set(err, ENFILE, "more than %d communicators", COMMS_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->comms = comms;
	do {
		c->number = ++comms->last;
	} while (c->number == 0 || c->number == WIRE_NO_COMM || comm_find(comms, c->number));
	c->parent = parent;
	if (id)
		memcpy(c->id, id, sizeof(c->id));
	for (size_t i = 0; known && i < n; i++)
		known[i] = (struct wire_member){ranks[i], entries[i].world_rank};
	if (known)
		n_known = add_recorded(comms->ops, &members->map, known, n);
	if (!known || comm_init(c, comms->ops, members, known, n_known) < 0 ||
	    tell_ready(c, entries) < 0) {
		comm_free(c);
		return err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < c->n_real; i++) {
		if (!c->real[i].is_recorded)
			c->real[i].worker = entries[k++].worker;
		if (c->real[i].worker)
			c->real[i].worker->n_members++;
	}
	HASH_ADD(hh, comms->by_number, number, sizeof(c->number), c);
	comms->n++;
	comm_log(c);
	check_layout(c);
	write_row(c);
	comms->sink->made(c);
	*ret = c;
	return 0;
}

struct comm *comm_free(struct comm *c)
{
	if (!c)
		return NULL;
	if (c->hh.tbl) {
		c->comms->sink->end_ops(c);
		HASH_DELETE(hh, c->comms->by_number, c);
		c->comms->n--;
	}
	comm_deinit(c);
	free(c);
	return NULL;
}

void comm_abort(struct comm *c, const struct comm_member *except, int code, const char *fmt, ...)
{
	struct wire_text text = {.code = code};
	struct wire_hdr h;
	va_list ap;

	if (c->is_dead)
		return;
	va_start(ap, fmt);
	vsnprintf(text.text, sizeof(text.text), fmt, ap);
	va_end(ap);
	plain_text(text.text);
	c->is_dead = true;
	warn_run("communicator %u is aborted: %s", c->number, text.text);
	notes_add(c->comms->notes, NOTES_ABORTS, "communicator %u was aborted: %s", c->number,
		  text.text);
	c->comms->sink->end_ops(c);
	c->comms->on_dead(c->comms->on_dead_ctx, c, text.text);
	wire_hdr_init(&h, WIRE_ABORT, sizeof(text));
	h.comm = c->number;
	for (uint32_t i = 0; i < c->n_real; i++) {
		h.rank = c->real[i].rank;
		if (c->real[i].worker && &c->real[i] != except)
			worker_send(c->real[i].worker, &h, &text);
	}
}

struct comm_member *comm_frame_member(struct comms *comms, struct worker *w,
				      const struct wire_hdr *h, struct comm **ret)
{
	struct comm *c = comm_find(comms, h->comm);
	struct comm_member *m;

	if (!c) {
		if (h->comm == 0 || h->comm > comms->last)
			worker_refuse(w, EPROTO, "%s for communicator %u, which never was",
				      wire_type_name(h->type), h->comm);
		return NULL;
	}
	m = comm_member(c, h->rank);
	if (!m || m->worker != w) {
		worker_refuse(w, EPROTO,
			      "%s for rank %u of communicator %u, which it does not play",
			      wire_type_name(h->type), h->rank, h->comm);
		return NULL;
	}
	*ret = c;
	return m;
}
