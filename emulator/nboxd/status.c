/* See status.h. */
#include "nboxd/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "nboxd/comm/gather-missing.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/wait.h"
#include "nboxd/rooms.h"
#include "nboxd/store/serve/server.h"
#include "nboxd/store/serve/virtual.h"

#define LISTED_MAX 1000
#define TEXT_MAX 1024

static void text_json(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(f, "\\u%04x", (unsigned)(unsigned char)*text);
		else
			fputc(*text, f);
	}
	fputc('"', f);
}

static void workers_json(const struct server *s, FILE *f)
{
	const struct worker *w;
	unsigned n = 0;

	fputs("\"workers\": [", f);
	DL_FOREACH(s->loop.workers.list, w) {
		if (w->state == WORKER_CLIENT || w->state == WORKER_BACK || n >= LISTED_MAX)
			continue;
		fprintf(f, "%s{\"worker\": %u, \"state\": \"%s\", \"pid\": %u, \"host\": ",
			n++ ? ", " : "", w->number, worker_states[w->state].name, w->pid);
		text_json(f, w->host);
		fprintf(f, ", \"link\": \"%s\", \"members\": %u, \"frames\": %llu}",
			link_kind(w->link), w->n_members, (unsigned long long)w->n_frames);
	}
	fputs("], ", f);
}

static void comms_json(const struct server *s, FILE *f)
{
	struct comm *c, *next;
	char how[TEXT_MAX];
	unsigned n = 0;

	fputs("\"communicators\": [", f);
	HASH_ITER(hh, s->comms.by_number, c, next) {
		if (n >= LISTED_MAX)
			break;
		fprintf(f,
			"%s{\"communicator\": %u, \"ranks\": %u, \"ranks_per_node\": %u, "
			"\"members\": \"%s\", \"guessed\": %s, \"dead\": %s, \"open_ops\": %u, "
			"\"real\": [",
			n++ ? ", " : "", c->number, c->n_ranks, c->ranks_per_node,
			comm_how(c, how, sizeof(how)),
			c->members.sure == MEMBERS_GUESSED ? "true" : "false",
			c->is_dead ? "true" : "false", op_n_open(c));
		for (uint32_t i = 0; i < c->n_real && i < 64; i++)
			fprintf(f, "%s%u", i ? ", " : "", c->real[i].world_rank);
		fputs("]}", f);
	}
	fputs("], ", f);
}

struct waiting {
	FILE *f;
	unsigned n;
};

static void waiting_json(void *ctx, const char *sentence)
{
	struct waiting *w = ctx;

	if (w->n >= LISTED_MAX)
		return;
	fputs(w->n++ ? ", " : "", w->f);
	text_json(w->f, sentence);
}

static void waits_json(const struct server *s, FILE *f)
{
	struct waiting waiting = {f, 0};
	uint64_t now_ns = clock_now_ns();
	struct comm *c, *next;

	fputs("\"waits\": [", f);
	gathers_describe(&s->gathers, waiting_json, &waiting);
	store_server_describe(s->store, now_ns, waiting_json, &waiting);
	HASH_ITER(hh, s->comms.by_number, c, next)
		op_describe_all(c, now_ns, waiting_json, &waiting);
	fputs("], ", f);
}

static void store_json(const struct server *s, FILE *f)
{
	struct store_server_counts n;

	if (!s->store)
		return;
	n = store_server_counts(s->store);
	fputs("\"store\": {\"addr\": ", f);
	text_json(f, server_store_addr(s));
	fprintf(f,
		", \"clients\": %llu, \"keys\": %llu, \"bytes\": %llu, \"waits\": %llu, "
		"\"requests\": %llu, \"invented_ids\": %llu}, ",
		(unsigned long long)n.store.n_clients, (unsigned long long)n.store.n_keys,
		(unsigned long long)n.store.n_bytes, (unsigned long long)n.store.n_waits,
		(unsigned long long)n.store.n_requests, (unsigned long long)n.n_invented);
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

char *status_json(const struct server *s)
{
	const struct config *c = s->config;
	char *text = NULL, model[512];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "{\"nboxd\": \"%s\", \"pid\": %d, \"addr\": ", NBOX_VERSION, (int)getpid());
	text_json(f, server_addr(s));
	fprintf(f,
		", \"uptime_s\": %.3f, \"world_size\": %u, \"nodes\": %u, \"gpus_per_node\": %u, "
		"\"real_ranks\": %zu, \"exchange\": \"%s\", \"data\": \"%s\", \"model\": ",
		(double)(clock_now_ns() - s->start_ns) / 1e9, c->world, c->topology.n_nodes,
		c->topology.gpus_per_node, c->n_real, wire_exchange_name(c->exchange),
		wire_data_name(c->data));
	text_json(f, config_model(c, model, sizeof(model)));
	fprintf(f,
		", \"seed\": %llu, \"links\": %u, \"n_communicators\": %u, \"gathering\": %u, "
		"\"ops\": %llu, \"open_ops\": %u, \"live_ops\": %u, \"messages_in\": %llu, "
		"\"messages_out\": %llu, \"warnings\": %llu, \"rss_bytes\": %ld, ",
		(unsigned long long)c->seed, s->loop.workers.n, s->comms.n, s->gathers.n,
		(unsigned long long)s->ops.n_ops, s->ops.n_open_ops, engine_n_live(s->ops.engine),
		(unsigned long long)s->ops.n_messages_in, (unsigned long long)s->ops.n_messages_out,
		(unsigned long long)warn_count(), rss_bytes());
	store_json(s, f);
	workers_json(s, f);
	comms_json(s, f);
	waits_json(s, f);
	fprintf(f, "\"out\": ");
	text_json(f, c->out ? c->out : "");
	fputs("}\n", f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
