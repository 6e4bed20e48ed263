/* See frames.h. */
#include "nboxd/frames.h"

#include <errno.h>

#include "nboxd/comm/gather-frames.h"
#include "nboxd/comm/gather-missing.h"
#include "nboxd/comm/groups.h"
#include "nboxd/comm/leave.h"
#include "nboxd/comm/meet.h"
#include "nboxd/full/message.h"
#include "nboxd/full/tune.h"
#include "nboxd/job/results.h"
#include "nboxd/op/message.h"
#include "nboxd/op/op.h"
#include "nboxd/op/point.h"
#include "nboxd/rooms.h"
#include "nboxd/status.h"
#include "nboxd/store/serve/server.h"
#include "nboxd/told.h"

/* The first worker's command is the job's: all ranks run the same. */
static void on_ready(void *ctx, struct worker *w)
{
	struct server *s = ctx;

	if (s->has_command || !s->config->out || !worker_is_here(w))
		return;
	s->has_command = true;
	results_note_command(s->config, w->pid);
}

static void take_apart(struct server *s, struct worker *w, const char *why)
{
	players_gone(&s->players, w);
	gathers_worker_gone(&s->gathers, w, why);
	leave_worker(&s->comms, w, why);
}

static void on_gone(void *ctx, struct worker *w, const char *why)
{
	struct server *s = ctx;
	char name[PLAYERS_NAME_MAX];

	full_worker_gone(w);
	if (w->state == WORKER_READY)
		notes_add(&s->notes, NOTES_ENDS, "%s, vanished (killed, or ended by _exit()): %s",
			  players_name(&s->players, w, name, sizeof(name)), why);
	take_apart(s, w, why);
}

static int on_bye(struct server *s, struct worker *w, uint64_t exit_code)
{
	char name[PLAYERS_NAME_MAX];

	if (exit_code)
		notes_add(&s->notes, NOTES_ENDS, "%s, ended with exit code %llu",
			  players_name(&s->players, w, name, sizeof(name)),
			  (unsigned long long)exit_code);
	worker_set_state(w, WORKER_LEAVING);
	door_on_bye(&s->door, (pid_t)w->pid);
	take_apart(s, w, NULL);
	return 0;
}

/* It is of a rank, not of a communicator's member: check-ins have said who plays that. */
static int on_point(struct server *s, struct worker *w, const struct wire_hdr *h, const void *body)
{
	if (!players_plays(&s->players, w, h->rank))
		return worker_refuse(w, EPROTO, "POINT for world rank %u, which it does not play",
				     h->rank);
	return op_on_point(&s->live, w, h, body);
}

static int on_full_frame(struct server *s, struct worker *w, const struct wire_hdr *h,
			 const void *body)
{
	if (!s->full)
		return worker_refuse(w, EPROTO, "%s, but NCCL is not run at the virtual size here",
				     wire_type_name(h->type));
	switch (h->type) {
	case WIRE_FLOW:
		return full_on_flow(s->full, w, h, body);
	case WIRE_WANT:
		return full_on_want(s->full, w, h);
	default:
		return full_on_tune(s->full, w, h, body);
	}
}

static int on_frame(void *ctx, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct server *s = ctx;
	char name[WORKER_NAME_MAX];

	switch (h->type) {
	case WIRE_COMM_INIT:
		return gather_on_init(&s->gathers, w, h, body);
	case WIRE_COMM_SPLIT:
		return gather_on_split(&s->gathers, w, h, body);
	case WIRE_COMM_SHRINK:
		return gather_on_shrink(&s->gathers, w, h, body);
	case WIRE_GROUP:
		groups_on_list(s->groups, w, body);
		store_server_look_again(s->store);
		return 0;
	case WIRE_NOTE:
		notes_take(&s->notes, worker_name(w, name, sizeof(name)), body);
		return 0;
	case WIRE_JOB:
		return told_on_job(s, w, h, body);
	case WIRE_COMM_FREE:
		return leave_on_free(&s->gathers, w, h);
	case WIRE_ABORT:
		return leave_on_abort(&s->gathers, w, h, body);
	case WIRE_MEET:
		return meet_on_promise(&s->comms, w, h);
	case WIRE_LOCAL_ID:
		return meet_on_id(&s->comms, w, h, body);
	case WIRE_POINT:
		return on_point(s, w, h, body);
	case WIRE_ARRIVE:
		return op_on_arrive(&s->live, w, h, body);
	case WIRE_TOOK:
		return op_on_took(&s->live, w, h, body);
	case WIRE_MESSAGE:
		return s->full ? full_on_message(s->full, w, h)
			       : op_on_message(&s->live, w, h, body);
	case WIRE_FLOW:
	case WIRE_WANT:
	case WIRE_TUNE:
		return on_full_frame(s, w, h, body);
	case WIRE_DONE:
		return op_on_done(&s->live, w, h, body);
	case WIRE_BYE:
		return on_bye(s, w, h->seq);
	default:
		return worker_refuse(w, EPROTO, "a worker may not send %s",
				     wire_type_name(h->type));
	}
}

static int on_message_header(void *ctx, struct worker *w, const struct wire_hdr *h, void **ret_body)
{
	struct server *s = ctx;

	return s->full ? full_on_message_header(s->full, w, h, ret_body)
		       : op_on_message_header(&s->live, w, h, ret_body);
}

static void on_sent(void *ctx, uint64_t cookie)
{
	(void)ctx;
	full_on_sent(cookie);
}

static char *on_status(void *ctx)
{
	return status_json(ctx);
}

const struct workers_sink frames_sink = {
	.on_ready = on_ready,
	.on_frame = on_frame,
	.on_message_header = on_message_header,
	.on_sent = on_sent,
	.on_gone = on_gone,
	.on_status = on_status,
};
