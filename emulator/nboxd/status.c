/* See status.h. */
#include "nboxd/status.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "nboxd/comm/gather-missing.h"
#include "nboxd/full/full.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/metrics.h"
#include "nboxd/op/wait.h"
#include "nboxd/rooms.h"
#include "nboxd/store/serve/server.h"
#include "nboxd/store/serve/virtual.h"
#include "op/decided.h"

#define LISTED_MAX 1000
#define REAL_LISTED_MAX 64

/* Of a text that is no UTF-8, what is ASCII. */
static json_t *text_json(const char *text)
{
	json_t *j = json_string(text);
	char ascii[1024];

	if (j)
		return j;
	snprintf(ascii, sizeof(ascii), "%s", text);
	for (char *p = ascii; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return json_string(ascii);
}

static json_t *workers_json(const struct server *s)
{
	json_t *list = json_array();
	const struct worker *w;

	DL_FOREACH(s->loop.workers.list, w) {
		if (w->state == WORKER_CLIENT || w->state == WORKER_BACK ||
		    json_array_size(list) >= LISTED_MAX)
			continue;
		json_array_append_new(list,
				      json_pack("{s:I, s:s, s:I, s:o, s:s, s:I, s:I}", "worker",
						(json_int_t)w->number, "state",
						worker_states[w->state].name, "pid",
						(json_int_t)w->pid, "host", text_json(w->host),
						"link", link_kind(w->link), "members",
						(json_int_t)w->n_members, "frames",
						(json_int_t)w->n_frames));
	}
	return list;
}

static json_t *comms_json(const struct server *s)
{
	json_t *list = json_array();
	struct comm *c, *next;
	char how[256];

	HASH_ITER(hh, s->comms.by_number, c, next) {
		json_t *real = json_array();

		for (uint32_t i = 0; i < c->n_real && i < REAL_LISTED_MAX; i++)
			json_array_append_new(real, json_integer(c->real[i].world_rank));
		json_array_append_new(
			list, json_pack("{s:I, s:I, s:I, s:o, s:b, s:b, s:I, s:o}", "communicator",
					(json_int_t)c->number, "ranks", (json_int_t)c->n_ranks,
					"ranks_per_node", (json_int_t)c->ranks_per_node, "members",
					text_json(comm_how(c, how, sizeof(how))), "guessed",
					c->members.sure == MEMBERS_GUESSED, "dead", c->is_dead,
					"open_ops", (json_int_t)op_n_open(c), "real", real));
		if (json_array_size(list) >= LISTED_MAX)
			break;
	}
	return list;
}

static void add_wait(void *list, const char *sentence)
{
	if (json_array_size(list) < LISTED_MAX)
		json_array_append_new(list, text_json(sentence));
}

static json_t *waits_json(const struct server *s)
{
	uint64_t now_ns = clock_now_ns();
	json_t *list = json_array();
	struct comm *c, *next;

	gathers_describe(&s->gathers, add_wait, list);
	store_server_describe(s->store, now_ns, add_wait, list);
	HASH_ITER(hh, s->comms.by_number, c, next) {
		full_describe(c, now_ns, add_wait, list);
		op_describe_all(c, now_ns, add_wait, list);
	}
	return list;
}

static json_t *store_json(const struct server *s)
{
	struct store_server_counts n = store_server_counts(s->store);

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "addr", server_store_addr(s),
			 "clients", (json_int_t)n.store.n_clients, "keys",
			 (json_int_t)n.store.n_keys, "bytes", (json_int_t)n.store.n_bytes, "waits",
			 (json_int_t)n.store.n_waits, "requests", (json_int_t)n.store.n_requests,
			 "invented_ids", (json_int_t)n.n_invented);
}

static long rss_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%*s %ld", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static json_t *world_json(const struct server *s)
{
	const struct config *c = s->config;
	char model[512], by[512];

	return json_pack("{s:s, s:i, s:o, s:f, s:I, s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:I}",
			 "nboxd", NBOX_VERSION, "pid", (int)getpid(), "addr",
			 text_json(server_addr(s)), "uptime_s",
			 (double)(clock_now_ns() - s->start_ns) / 1e9, "world_size",
			 (json_int_t)c->world, "nodes", (json_int_t)c->topology.n_nodes,
			 "gpus_per_node", (json_int_t)c->topology.gpus_per_node, "real_ranks",
			 (json_int_t)c->n_real, "exchange", wire_exchange_name(c->exchange), "data",
			 wire_data_name(c->data), "model",
			 text_json(config_model(c, model, sizeof(model))), "decided_by",
			 text_json(decided_print(&s->live.ops, by, sizeof(by))), "seed",
			 (json_int_t)c->seed);
}

static json_t *counts_json(const struct server *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "links",
			 (json_int_t)s->loop.workers.n, "n_communicators", (json_int_t)s->comms.n,
			 "gathering", (json_int_t)s->gathers.n, "ops",
			 (json_int_t)s->live.ops.n_ops, "open_ops", (json_int_t)s->live.ops.n_open,
			 "live_ops", (json_int_t)engine_n_live(s->live.engine), "messages_in",
			 (json_int_t)s->live.n_messages_in, "messages_out",
			 (json_int_t)s->live.n_messages_out, "warnings", (json_int_t)warn_count(),
			 "rss_bytes", (json_int_t)rss_bytes());
}

static json_t *full_json(const struct server *s)
{
	struct traffic_counts n;

	full_count(s->full, &n);
	return json_pack(
		"{s:s, s:s, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:I}",
		"nccl", "full", "exchange", wire_exchange_name(s->config->traffic), "traffic",
		"arrived", (json_int_t)n.n_arrived, "sent", (json_int_t)n.n_sent, "arrived_bytes",
		(json_int_t)n.arrived_bytes, "sent_bytes", (json_int_t)n.sent_bytes, "identity",
		(json_int_t)n.n_identity, "summed", (json_int_t)n.n_summed, "late",
		(json_int_t)n.n_late, "late_ns", (json_int_t)n.late_ns, "never",
		(json_int_t)n.n_never, "waiting", (json_int_t)n.n_waiting, "flows",
		(json_int_t)n.n_flows, "communicators", (json_int_t)full_comms(s->full),
		"transports", (json_int_t)full_transports(s->full));
}

char *status_json(const struct server *s)
{
	json_t *all = world_json(s), *counts = counts_json(s);
	json_t *full = s->full ? full_json(s) : NULL;
	char *text = NULL;

	json_object_update(all, counts);
	if (full)
		json_object_update(all, full);
	if (s->store)
		json_object_set_new(all, "store", store_json(s));
	if (s->metrics)
		json_object_set_new(all, "metrics", text_json(metrics_addr(s->metrics)));
	json_object_set_new(all, "workers", workers_json(s));
	json_object_set_new(all, "communicators", comms_json(s));
	json_object_set_new(all, "waits", waits_json(s));
	json_object_set_new(all, "out", text_json(s->config->out ? s->config->out : ""));
	text = all ? json_dumps(all, 0) : NULL;
	json_decref(counts);
	json_decref(full);
	json_decref(all);
	return text;
}
