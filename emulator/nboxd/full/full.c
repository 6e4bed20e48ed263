/* See full.h. */
#include "nboxd/full/full.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host-facts.h"
#include "base/log.h"
#include "base/units.h"
#include "nboxd/full/message.h"
#include "nboxd/full/own.h"
#include "nboxd/job/notes.h"
#include "nboxd/loop/listen.h"
#include "nboxd/loop/warn.h"

#define LOOK_NS NS_PER_S /* between two looks at what bootstraps wait for */

/* --- what the rooms below say ------------------------------------------------------- */

static struct full_comm *find(const struct full *f, const struct bootstrap_comm *comm)
{
	struct full_comm *fc;

	DL_SEARCH_SCALAR(f->list, fc, bootstrap, comm);
	return fc;
}

static void on_bootstrap_failed(void *ctx, struct bootstrap_comm *comm, const char *sentence)
{
	struct full_comm *fc = find(ctx, comm);

	if (fc)
		full_fail(fc, ECONNABORTED, "NCCL's bootstrap: %s", sentence);
}

/* Channels of a graph that a real rank's search has found. */
static uint32_t n_channels(const struct record_graph *g, enum record_graph_of of,
			   const uint8_t *record)
{
	return (uint32_t)record_int(record + (size_t)of * g->graph_bytes, g->n_channels);
}

/* NCCL takes the least of all ranks, and of trees and rings. Virtual ranks have what their
 * templates have. */
static void on_record(void *ctx, struct bootstrap_comm *comm, const char *what, uint32_t rank,
		      const uint8_t *record, size_t bytes)
{
	struct full_comm *fc = strcmp(what, "graph") == 0 ? find(ctx, comm) : NULL;
	uint32_t n, n_rings;

	(void)rank;
	if (!fc || bytes != fc->records->graph.bytes)
		return;
	n = n_channels(&fc->records->graph, RECORD_OF_TREE, record);
	n_rings = n_channels(&fc->records->graph, RECORD_OF_RING, record);
	n = n_rings < n ? n_rings : n;
	if (n == 0 || n >= fc->n_tree_channels)
		return;
	fc->n_tree_channels = n;
	traffic_comm_set_trees(fc->traffic, n);
}

static void on_refused(void *ctx, const char *sentence)
{
	(void)ctx;
	warn_stranger("NCCL's bootstrap: %s", sentence);
}

/* No votes: members of a split meet as those of any other communicator, with an id of their own. */
static const struct bootstrap_told told = {
	.failed = on_bootstrap_failed,
	.record = on_record,
	.refused = on_refused,
};

static void on_traffic_failed(void *owner, void *tag, const char *sentence)
{
	(void)owner;
	full_fail(tag, EPROTO, "%s", sentence);
}

static const struct traffic_sink traffic_sink = {.send = full_send, .failed = on_traffic_failed};

/* --- life --------------------------------------------------------------------------- */

int full_open(struct event_base *base, const struct listen *listen, struct comms *comms,
	      struct full **ret, struct err *err)
{
	struct full *f = calloc(1, sizeof(*f));
	struct sockaddr_storage address;
	struct host_facts host;
	uint64_t memory_bytes;
	int r;

	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	f->comms = comms;
	host_facts_read(&host);
	memory_bytes = (uint64_t)host.memory_bytes;
	r = listen_reach(listen, &address, err);
	if (r == 0)
		r = bootstrap_serve_new(base, (const struct sockaddr *)&address, NULL, &told, f,
					&f->serve, err);
	if (r == 0 && comms->config->traffic == EXCHANGE_PAYLOAD &&
	    !(f->bodies = traffic_bodies_new(memory_bytes / 4 * 3)))
		r = err_set(err, ENOMEM, "out of memory");
	f->queue_max_bytes = memory_bytes / 8;
	if (r == 0 && traffic_new(&traffic_sink, f, f->bodies, memory_bytes / 2, &f->traffic) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r < 0)
		full_close(f);
	else
		*ret = f;
	return r;
}

struct full *full_close(struct full *f)
{
	if (!f)
		return NULL;
	bootstrap_serve_free(f->serve);
	traffic_free(f->traffic);
	traffic_body_unref(f->fill);
	traffic_bodies_free(f->bodies);
	free(f);
	return NULL;
}

void full_set_nccl(struct full *f, const char *version)
{
	int major, minor, patch;

	f->version = sscanf(version, "%d.%d.%d", &major, &minor, &patch) == 3
			     ? NCCL_CODE(major, minor, patch)
			     : 0;
}

/* --- time --------------------------------------------------------------------------- */

uint64_t full_advance(struct full *f, uint64_t now_ns)
{
	uint64_t next_ns = traffic_advance(f->traffic, now_ns);
	struct full_comm *fc, *next;

	if (!f->n_failed)
		return next_ns;
	DL_FOREACH_SAFE(f->list, fc, next)
		if (fc->code)
			comm_abort(fc->comm, NULL, fc->code, "%s", fc->why);
	return next_ns;
}

/* "NCCL's bootstrap of communicator 3 has waited 5.0 s: all-gather 2 (peer) waits for ranks 1, 5";
 * "" for nothing. */
static char *describe(const struct full_comm *fc, uint64_t now_ns, char *buf, size_t size)
{
	buf[0] = '\0';
	if (fc->waits[0])
		snprintf(buf, size, "NCCL's bootstrap of communicator %u has waited %.1f s: %s",
			 fc->comm->number, (double)(now_ns - fc->since_ns) / 1e9, fc->waits);
	return buf;
}

static void look(struct full_comm *fc, uint64_t now_ns)
{
	uint64_t timeout_ns = fc->full->comms->config->timeout_ns;
	char waits[sizeof(fc->waits)], text[400];

	bootstrap_comm_waits(fc->bootstrap, waits, sizeof(waits));
	if (strcmp(waits, fc->waits) != 0) {
		memcpy(fc->waits, waits, sizeof(waits));
		fc->since_ns = now_ns;
		fc->warn_ns = now_ns + WARN_NS;
	}
	if (!fc->waits[0])
		return;
	if (now_ns - fc->since_ns >= timeout_ns) {
		full_fail(fc, ETIMEDOUT, "%s; that is the timeout",
			  describe(fc, now_ns, text, sizeof(text)));
	} else if (now_ns >= fc->warn_ns) {
		warn_run("%s", describe(fc, now_ns, text, sizeof(text)));
		fc->warn_ns = now_ns + (now_ns - fc->since_ns);
	}
}

void full_tick(struct full *f, uint64_t now_ns)
{
	struct full_comm *fc;

	if (now_ns < f->look_ns)
		return;
	f->look_ns = now_ns + LOOK_NS;
	DL_FOREACH(f->list, fc)
		if (!fc->code)
			look(fc, now_ns);
}

/* --- words and numbers -------------------------------------------------------------- */

char *full_waits(const struct comm *c, char *buf, size_t size)
{
	buf[0] = '\0';
	return c->full ? traffic_waits(c->full->traffic, buf, size) : buf;
}

void full_describe(const struct comm *c, uint64_t now_ns,
		   void (*each)(void *ctx, const char *sentence), void *ctx)
{
	char text[400], all[500];

	if (!c->full)
		return;
	if (describe(c->full, now_ns, text, sizeof(text))[0])
		each(ctx, text);
	if (!full_waits(c, text, sizeof(text))[0])
		return;
	snprintf(all, sizeof(all), "NCCL's messages in communicator %u: %s", c->number, text);
	each(ctx, all);
}

void full_count(const struct full *f, struct traffic_counts *ret)
{
	traffic_count(f->traffic, ret);
}

uint32_t full_comms(const struct full *f)
{
	const struct full_comm *fc;
	uint32_t n;

	DL_COUNT(f->list, fc, n);
	return n;
}

uint64_t full_transports(const struct full *f)
{
	uint64_t n = f->n_transports;
	const struct full_comm *fc;

	DL_FOREACH(f->list, fc)
		n += bootstrap_comm_transports(fc->bootstrap);
	return n;
}

static void note_traffic(const struct full *f, struct notes *notes)
{
	char bytes[48] = "", never[64] = "", late[32], arrived[32];
	struct traffic_counts n;

	full_count(f, &n);
	if (f->bodies)
		snprintf(bytes, sizeof(bytes), " (%s)",
			 units_print_bytes(n.arrived_bytes, arrived, sizeof(arrived)));
	if (n.n_never)
		snprintf(never, sizeof(never), ", %llu that never crossed the link",
			 (unsigned long long)n.n_never);
	notes_say(notes, "nboxd",
		  WIRE_NOTE_TRAFFIC "%llu from real ranks%s, %llu to them, %llu identity, "
				    "%llu sums, %llu late by %s in all%s",
		  (unsigned long long)n.n_arrived, bytes, (unsigned long long)n.n_sent,
		  (unsigned long long)n.n_identity, (unsigned long long)n.n_summed,
		  (unsigned long long)n.n_late,
		  units_print_time((double)n.late_ns, late, sizeof(late)), never);
}

void full_note(const struct full *f, struct notes *notes)
{
	char text[WIRE_TEXT_MAX - sizeof(WIRE_NOTE_TOOK)];

	if (took_print(&f->took, text, sizeof(text))[0])
		notes_say(notes, "nboxd", WIRE_NOTE_TOOK "%s", text);
	note_traffic(f, notes);
}
