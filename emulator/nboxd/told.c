/* See told.h. */
#include "nboxd/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "engine/delay.h"
#include "engine/record-write.h"
#include "nboxd/full/full.h"
#include "nboxd/loop/worker.h"
#include "nboxd/rooms.h"
#include "op/decided.h"

/* Is @w the only process of the job? */
static bool is_alone(const struct server *s, const struct worker *w)
{
	const struct worker *other;

	DL_FOREACH(s->loop.workers.list, other)
		if (other != w && other->state == WORKER_READY)
			return false;
	return true;
}

void told_note_decided(struct server *s)
{
	char by[WIRE_TEXT_MAX - sizeof(WIRE_NOTE_DECIDED)];

	if (decided_print(&s->live.ops, by, sizeof(by))[0])
		notes_say(&s->notes, "nboxd", WIRE_NOTE_DECIDED "%s", by);
}

/* Has ops decided by what @w tells. */
static int follow(struct server *s, struct worker *w, const void *body, size_t bytes)
{
	CLEANUP(freep) char *texts = malloc(bytes);
	struct delay_job job = {.texts = texts, .bytes = bytes};
	struct err err = {""};
	int r;

	if (!texts)
		return worker_refuse(w, ENOMEM, "out of memory");
	memcpy(texts, body, bytes);
	if (s->job_texts)
		told_note_decided(s);
	r = delay_set_job(s->live.ops.delay, &job, &err);
	if (r < 0)
		return worker_refuse(w, -r, "%s", err.text);
	free(s->job_texts);
	s->job_texts = steal_ptr(texts);
	if (s->full)
		full_set_nccl(s->full, s->job_texts);
	record_job(s->live.record, s->job_texts, bytes);
	if (delay_warning(s->live.ops.delay))
		notes_say(&s->notes, "nboxd", "%s", delay_warning(s->live.ops.delay));
	return 0;
}

int told_on_job(struct server *s, struct worker *w, const struct wire_hdr *h, const void *body)
{
	const struct delay_job job = {.texts = body, .bytes = h->body_bytes};
	char name[WORKER_NAME_MAX];
	const char *what;

	if (!s->job_texts || is_alone(s, w))
		return follow(s, w, body, job.bytes);
	what = delay_job_differs(s->live.ops.delay, &job);
	if (what)
		notes_say(
			&s->notes, worker_name(w, name, sizeof(name)),
			"a process of the job has another %s than the first one, by whose ops are "
			"decided",
			what);
	return 0;
}
