/* See recorded.h. */
#include "nboxd/op/recorded.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/record-read.h"
#include "nboxd/comm/leave.h"
#include "nboxd/job/notes.h"
#include "nboxd/loop/warn.h"
#include "op/p2p.h"
#include "replay/part.h"
#include "replay/player.h"
#include "replay/worlds.h"

struct recorded {
	struct live *live;   /* borrowed */
	struct record *recs; /* owned list */
	size_t n_recs;
	struct worlds worlds;
	struct rows_graph graph;
	struct part part;
	struct bitmap ranks;    /* that are played */
	struct cluster cluster; /* with them among the real ones; the list is owned */
	struct player player;
	bool *is_met; /* owned; by the record's communicators: one is made, or was */
	bool has_started, is_stopped;
};

/* --- loading ---------------------------------------------------------------------------------- */

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* @word: a record, or a results directory. */
static int load(struct recorded *x, const char *word, struct err *err)
{
	char path[PATH_MAX + 16];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%s%s", word,
		 stat(word, &st) == 0 && S_ISDIR(st.st_mode) ? "/record.nbox" : "");
	r = record_load(path, &x->recs[x->n_recs], err);
	if (r < 0)
		return err_prefix(err, r, "with");
	if (x->recs[x->n_recs++].n_ops == 0)
		return err_set(err, EINVAL, "with: %.200s has no op", path);
	return 0;
}

/* The real ranks of the record that have no process. */
static int find_ranks(struct recorded *x, struct err *err)
{
	const struct config *c = x->live->ops.config;
	const struct part *p = &x->part;
	uint32_t *real = malloc(c->world * sizeof(*real));

	x->cluster = *x->live->ops.cluster;
	x->cluster.real = real;
	x->cluster.n_real = 0;
	if (!real || bitmap_init(&x->ranks, c->world) < 0)
		return no_memory(err);
	for (uint64_t i = 0; i < p->n_comms; i++)
		for (uint32_t k = 0; k < p->comms[i].n_real; k++)
			if (!cluster_is_real(x->live->ops.cluster, p->comms[i].real[k].world_rank))
				bitmap_set(&x->ranks, p->comms[i].real[k].world_rank);
	if (bitmap_count(&x->ranks) == 0)
		return err_set(err, EINVAL,
			       "with: all ranks of these runs have a process here: --as-node or "
			       "--real choose which ranks that are");
	for (uint32_t rank = 0; rank < c->world; rank++)
		if (bitmap_test(&x->ranks, rank) || cluster_is_real(x->live->ops.cluster, rank))
			real[x->cluster.n_real++] = rank;
	return 0;
}

static bool opened(void *ctx, struct op *op, uint32_t kind)
{
	const struct recorded *x = ctx;

	op->moved_ns = clock_now_ns();
	return !failures_on_op(x->live->failures, op->comm, kind);
}

static void taken(void *ctx, uint32_t row)
{
	struct recorded *x = ctx;

	x->part.out.ops[x->graph.rows[row].index].order = x->live->n_points++;
	failures_on_arrival(x->live->failures, x->player.posts[row]);
}

static void over(void *ctx, uint32_t row)
{
	struct recorded *x = ctx;
	const struct rows_row *of = &x->graph.rows[row];
	struct record_point *p = &x->part.out.points[of->index];
	struct record_op *op = &x->part.out.ops[of->index];
	struct live *live = x->live;

	if (of->is_op) {
		op->done_order = live->n_points;
		op->flags |= RECORD_NO_PROCESS;
		record_op(live->record, op);
		totals_op(&live->totals, op);
		leave_if_over(x->player.comms[op->of - x->part.out.comms]);
	} else {
		p->order = live->n_points++;
		record_point(live->record, p);
		totals_point(&live->totals, p);
	}
}

static int failed(void *ctx, struct comm *c, int r, const struct err *err)
{
	(void)ctx;
	if (!c)
		return r;
	comm_abort(c, NULL, -r, "%s", err->text);
	return 0;
}

static const struct player_sink player_sink = {
	.opened = opened,
	.taken = taken,
	.over = over,
	.failed = failed,
};

static int make(struct recorded *x, struct err *err)
{
	const struct config *c = x->live->ops.config;
	const struct config_value *with = &c->values[CONFIG_WITH];
	CLEANUP(freep) const struct record **recs = calloc(with->n_items, sizeof(*recs));
	int r = 0;

	x->recs = calloc(with->n_items, sizeof(*x->recs));
	if (!recs || !x->recs)
		return no_memory(err);
	for (size_t i = 0; i < with->n_items && r == 0; i++) {
		recs[i] = &x->recs[i];
		r = load(x, with->items[i].text, err);
	}
	if (r == 0)
		r = worlds_make(recs, with->n_items, &x->worlds, err);
	if (r == 0)
		r = rows_graph_make(x->worlds.recs[0], &x->graph, err);
	if (r == 0)
		r = part_make(x->worlds.recs[0], c, &x->worlds.sizes, NULL, &x->part, err);
	if (r == 0)
		r = find_ranks(x, err);
	x->is_met = calloc(x->part.n_comms + 1, sizeof(*x->is_met));
	x->player = (struct player){.graph = &x->graph,
				    .ops = &x->live->ops,
				    .out = &x->part.out,
				    .ranks = &x->ranks,
				    .sink = &player_sink,
				    .ctx = x};
	if (r < 0 || !x->is_met)
		return r < 0 ? r : no_memory(err);
	return player_open(&x->player, err);
}

int recorded_open(struct live *live, struct err *err)
{
	int r;

	if (live->ops.config->values[CONFIG_WITH].n_items == 0)
		return 0;
	live->recorded = calloc(1, sizeof(*live->recorded));
	if (!live->recorded)
		return no_memory(err);
	live->recorded->live = live;
	r = make(live->recorded, err);
	if (r == 0) {
		live->ops.cluster = &live->recorded->cluster;
		live->ops.recorded = &live->recorded->ranks;
	}
	return r;
}

void recorded_close(struct live *live)
{
	struct recorded *x = live->recorded;

	if (!x)
		return;
	player_close(&x->player);
	free((uint32_t *)(uintptr_t)x->cluster.real);
	bitmap_deinit(&x->ranks);
	free(x->is_met);
	part_deinit(&x->part);
	rows_graph_deinit(&x->graph);
	worlds_deinit(&x->worlds);
	for (size_t i = 0; i < x->n_recs; i++)
		record_deinit(&x->recs[i]);
	free(x->recs);
	free(x);
	live->recorded = NULL;
}

/* --- communicators ---------------------------------------------------------------------------- */

static bool is_same(const struct record_comm *a, const struct membership *b)
{
	if (a->n_ranks != b->n_ranks)
		return false;
	for (uint32_t i = 0; i < a->n_ranks; i++)
		if (record_world_rank(a, i) != membership_world(b, i))
			return false;
	return true;
}

static void stop(struct recorded *x, const struct err *err)
{
	x->is_stopped = true;
	warn_run("what ranks without a process do cannot be played from their record: %s",
		 err->text);
}

static bool has_recorded(const struct comm *c)
{
	for (uint32_t i = 0; i < c->n_real; i++)
		if (c->real[i].is_recorded)
			return true;
	return false;
}

void recorded_on_comm(struct comm *c)
{
	struct recorded *x = live_of(c->ops)->recorded;
	struct err err = {""};

	if (!x || !has_recorded(c))
		return;
	for (uint64_t i = 0; i < x->part.n_comms; i++) {
		if (x->is_met[i] || !is_same(&x->part.out.comms[i], &c->members.map))
			continue;
		x->is_met[i] = true;
		if (player_meet(&x->player, i, c, &err) < 0)
			stop(x, &err);
		return;
	}
}

void recorded_on_end(struct comm *c)
{
	struct recorded *x = live_of(c->ops)->recorded;

	if (x)
		player_part(&x->player, c);
}

bool recorded_is_played(const struct comm *c)
{
	const struct recorded *x = live_of(c->ops)->recorded;

	for (uint64_t i = 0; x && i < x->part.n_comms; i++)
		if (x->player.comms[i] == c)
			return x->player.n_left_in[i] > 0;
	return false;
}

/* Communicators of ranks that all have no process, and that play. */
static void make_own(struct recorded *x)
{
	const struct cluster *with_process = x->live->comms->cluster;
	struct comms *comms = x->live->comms;
	struct err err = {""};
	struct comm *c;

	for (uint64_t i = 0; i < x->part.n_comms && !x->is_stopped; i++) {
		struct part_comm *of = &x->part.comms[i];
		const struct membership *m = &of->members.map;
		bool has_process = false, is_played = false;

		for (size_t k = 0; k < with_process->n_real; k++)
			has_process |= membership_rank(m, with_process->real[k]) >= 0;
		for (uint32_t k = 0; k < of->n_real; k++)
			is_played |= bitmap_test(&x->ranks, of->real[k].world_rank);
		if (!has_process && is_played &&
		    comm_new(comms, &of->members, NULL, NULL, 0, NULL, 0, &c, &err) < 0)
			stop(x, &err);
	}
}

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t first_ns(const struct recorded *x)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < x->graph.n; i++) {
		const struct rows_row *row = &x->graph.rows[i];
		const struct record_op *op = &x->part.out.ops[row->index];
		const struct record_point *p = &x->part.out.points[row->index];
		uint64_t ns = row->is_op ? op->arrive_ns : p->time_ns;

		if (bitmap_test(&x->ranks, row->is_op ? op->world_rank : p->world_rank) &&
		    ns < first)
			first = ns;
	}
	return first;
}

static void shift(uint64_t *ns, uint64_t by)
{
	if (*ns)
		*ns += by;
}

/* The record's wall times on nboxd's clock. @by: modulo 2^64. */
static void shift_all(struct recorded *x, uint64_t by)
{
	for (uint64_t i = 0; i < x->part.out.n_ops; i++) {
		struct record_op *op = &x->part.out.ops[i];
		uint64_t *const all[] = {&op->call_ns,      &op->work_ns, &op->arrive_ns,
					 &op->start_ns,     &op->due_ns,  &op->release_ns,
					 &op->local_done_ns};

		for (size_t k = 0; k < ARRAY_SIZE(all); k++)
			shift(all[k], by);
	}
	for (uint64_t i = 0; i < x->part.out.n_points; i++) {
		struct record_point *p = &x->part.out.points[i];
		uint64_t *const all[] = {&p->call_ns, &p->time_ns, &p->work_ns};

		for (size_t k = 0; k < ARRAY_SIZE(all); k++)
			shift(all[k], by);
	}
	for (uint32_t i = 0; i < x->graph.n; i++) {
		struct rows_row *row = &x->graph.rows[i];

		shift(&row->latest.open_ns, by);
		for (uint32_t k = 0; k < row->n_deps; k++)
			shift(&x->graph.deps[row->first_dep + k].open_ns, by);
	}
}

/* What is not known of the records' ops in this world, which is another one than theirs. */
static void tell_counts(const struct recorded *x)
{
	const struct counts_told *told = &x->part.told;
	struct notes *notes = x->live->comms->notes;

	for (uint32_t kind = 0; kind < COLL_KINDS; kind++)
		for (int law = LAW_KEEP; law < LAW_KINDS; law++) {
			uint64_t assumed = told->n[COUNTS_ASSUMED][kind][law],
				 beyond = told->n[COUNTS_BEYOND][kind][law];

			if (assumed + beyond)
				notes_say(
					notes, "nboxd",
					"%s: %llu %s of ranks without a process follow the world's size as '%s'; their records (with) are of another size",
					assumed ? "assumed" : "extrapolated",
					(unsigned long long)(assumed + beyond),
					coll_kind_name(kind), law_name((enum law_kind)law));
		}
}

void recorded_on_row(struct live *live)
{
	struct recorded *x = live->recorded;
	struct err err = {""};

	if (!x || x->has_started)
		return;
	x->has_started = true;
	shift_all(x, timelines_epoch_ns(live->ops.timelines) - first_ns(x));
	make_own(x);
	tell_counts(x);
	if (player_start(&x->player, 0, &err) < 0)
		stop(x, &err);
}

void recorded_on_released(struct post *post)
{
	player_released(&live_of(post->op->comm->ops)->recorded->player, post);
}

uint64_t recorded_advance(struct live *live, uint64_t now_ns)
{
	struct recorded *x = live->recorded;
	struct err err = {""};
	uint64_t epoch_ns;
	double next;

	if (!x || !x->has_started || x->is_stopped)
		return UINT64_MAX;
	epoch_ns = timelines_epoch_ns(live->ops.timelines);
	if (player_advance(&x->player, (double)(now_ns - epoch_ns), &err) < 0)
		stop(x, &err);
	next = player_next(&x->player);
	return isfinite(next) ? epoch_ns + (uint64_t)ceil(next) : UINT64_MAX;
}

void recorded_finish(struct live *live)
{
	struct recorded *x = live->recorded;
	struct err err = {""};

	if (x && x->has_started && !x->is_stopped && player_advance(&x->player, INFINITY, &err) < 0)
		stop(x, &err);
}

/* --- the end of a record ---------------------------------------------------------------------- */

/* Whether no record has what @m owes @c. */
static bool is_over(const struct recorded *x, const struct comm *c, const struct comm_member *m)
{
	for (uint64_t i = 0; i < x->part.n_comms; i++)
		if (x->player.comms[i] == c)
			return x->player.n_left[m->world_rank] == 0 || x->player.n_left_in[i] == 0;
	return true;
}

/* The rank without a process that @op waits for in vain; NULL: none. */
static const struct comm_member *waits_in_vain(const struct recorded *x, const struct op *op)
{
	const struct comm *c = op->comm;

	for (uint32_t i = 0; i < c->n_real; i++) {
		const struct comm_member *m = &c->real[i];
		bool is_waited_for = op->p2p ? p2p_waits_for(op, m) != NULL : !op->posts[i].node;

		if (m->is_recorded && is_waited_for && is_over(x, c, m))
			return m;
	}
	return NULL;
}

void recorded_tick(struct live *live)
{
	const struct recorded *x = live->recorded;
	struct comm *c, *next_comm;
	struct op *op, *next;
	char name[OP_NAME_MAX];

	if (!x || !x->has_started)
		return;
	HASH_ITER(hh, live->comms->by_number, c, next_comm) {
		if (!c->open)
			continue;
		HASH_ITER(hh, c->open->ops, op, next) {
			const struct comm_member *m = waits_in_vain(x, op);

			if (!m)
				continue;
			comm_abort(
				c, NULL, ENODATA,
				"%s waits for rank %u (world rank %u), which has no process, and "
				"its record (--with) has no such op: record a run as long as "
				"this one, of the same job",
				op_name(op->key.seq, op_first_arrived(op)->member->rank, c->number,
					name, sizeof(name)),
				m->rank, m->world_rank);
			break;
		}
	}
}
