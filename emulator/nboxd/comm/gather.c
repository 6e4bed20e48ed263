/* See gather.h. */
#include "nboxd/comm/gather.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/plain.h"
#include "nboxd/comm/job-lists.h"
#include "nboxd/loop/loop.h"
#include "nboxd/loop/warn.h"
#include "wire/unique-id.h"

#define GATHERS_MAX 4096

const char *const gather_kind_names[] = {"init", "split", "shrink"};

static void leave_list(struct gather *g)
{
	struct gathers *gs = g->gathers;

	if (g->code) {
		DL_DELETE(gs->failed, g);
		gs->n_failed--;
	} else {
		DL_DELETE(gs->list, g);
		gs->n--;
	}
}

void gather_free(struct gather *g)
{
	leave_list(g);
	job_list_free(g->lists);
	free(g->excluded);
	free(g->entries);
	free(g);
}

void gathers_deinit(struct gathers *gs)
{
	struct gather *g, *next;

	DL_FOREACH_SAFE(gs->list, g, next)
		gather_free(g);
	while (gs->failed)
		gather_free(gs->failed);
}

void gather_tell_failed(struct worker *w, uint32_t cookie, int code, const char *why)
{
	struct wire_text text = {.code = code};
	struct wire_hdr h;

	snprintf(text.text, sizeof(text.text), "%s", why);
	wire_hdr_init(&h, WIRE_ABORT, sizeof(text));
	h.comm = WIRE_NO_COMM;
	h.seq = cookie;
	if (w)
		worker_send(w, &h, &text);
}

bool gather_is_excluded(const struct gather *g, uint32_t rank)
{
	for (uint32_t i = 0; i < g->n_excluded; i++)
		if (g->excluded[i] == rank)
			return true;
	return false;
}

const struct comm_member *gather_awaited_member(const struct gather *g, const struct comm *parent,
						const struct worker *w)
{
	for (uint32_t i = 0; i < parent->n_real; i++)
		if (parent->real[i].worker == w && !parent->real[i].is_recorded &&
		    !gather_is_excluded(g, parent->real[i].rank))
			return &parent->real[i];
	return NULL;
}

bool gather_has(const struct gather *g, uint32_t world_rank)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->entries[i].world_rank == world_rank)
			return true;
	return false;
}

void gather_fail(struct gather *g, int code, const char *fmt, ...)
{
	struct gathers *gs = g->gathers;
	char why[WIRE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	plain_text(why);
	warn_run("no communicator by %s: %s", gather_kind_names[g->kind], why);
	for (uint32_t i = 0; i < g->n; i++)
		gather_tell_failed(g->entries[i].worker, g->entries[i].cookie, code, why);
	if (g->n >= g->n_wanted) {
		gather_free(g);
		return;
	}
	leave_list(g);
	job_list_free(g->lists); /* as large as the world, and later members need only the reason */
	g->lists = NULL;
	g->code = code;
	memcpy(g->why, why, sizeof(g->why));
	g->last_ns = clock_now_ns();
	if (gs->n_failed == GATHERS_MAX)
		gather_free(gs->failed);
	DL_APPEND(gs->failed, g);
	gs->n_failed++;
}

bool gather_excludes_same(const struct gather *g, const struct gather_wanted *w)
{
	return g->n_excluded == w->n_excluded &&
	       memcmp(g->excluded, w->excluded, w->n_excluded * sizeof(*g->excluded)) == 0;
}

/* With a common id (NCCL_COMM_ID) a rank's check-ins are to one communicator after the other: each
 * is for the first of the right size that lacks it. Any other id has one communicator. */
static bool is_for(const struct gather *g, const struct gather_wanted *w)
{
	if (g->kind != w->kind)
		return false;
	if (w->kind == GATHER_SPLIT)
		return g->parent == w->parent && g->count == w->count;
	if (w->kind == GATHER_SHRINK) /* no count: members that it leaves out do not call it */
		return g->parent == w->parent && gather_excludes_same(g, w) &&
		       !gather_has(g, w->world_rank);
	if (memcmp(g->id, w->id, sizeof(g->id)) != 0)
		return false;
	if (!wire_unique_id_is_common(w->id))
		return true;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->entries[i].rank == w->rank)
			return false;
	return g->n_ranks == w->n_ranks && !gather_has(g, w->world_rank);
}

struct gather *gather_find(struct gathers *gs, const struct gather_wanted *w)
{
	struct gather *g;

	DL_FOREACH(gs->list, g)
		if (is_for(g, w))
			return g;
	return NULL;
}

struct gather *gather_new(struct gathers *gs, enum gather_kind kind)
{
	struct gather *g;

	if (gs->n >= GATHERS_MAX)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->gathers = gs;
	g->kind = kind;
	g->first_ns = g->last_ns = clock_now_ns();
	g->warn_ns = g->first_ns + WARN_NS;
	DL_APPEND(gs->list, g);
	gs->n++;
	gs->loop->tick_ns = 0; /* else an idle nboxd looks once a second, and settles late */
	return g;
}

int gather_add(struct gather *g, const struct comm_entry *entry)
{
	struct comm_entry *entries;
	uint32_t at = 0;

	while (at < g->n && g->entries[at].rank < entry->rank)
		at++;
	if (at < g->n && g->entries[at].rank == entry->rank)
		return -EEXIST;
	entries = realloc(g->entries, (g->n + 1) * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	g->entries = entries;
	memmove(&entries[at + 1], &entries[at], (g->n - at) * sizeof(*entries));
	entries[at] = *entry;
	g->n++;
	g->last_ns = clock_now_ns();
	return 0;
}

bool gather_has_failed(struct gathers *gs, const struct gather_wanted *w,
		       const struct comm_entry *entry)
{
	struct gather *g;

	DL_FOREACH(gs->failed, g) {
		if (!is_for(g, w) || gather_has(g, w->world_rank))
			continue;
		gather_tell_failed(entry->worker, entry->cookie, g->code, g->why);
		if (gather_add(g, entry) == 0 && g->n >= g->n_wanted)
			gather_free(g);
		return true;
	}
	return false;
}
