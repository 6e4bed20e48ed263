/* See server.h. Frames: frames.c; the status: status.c. */
#include "nboxd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "config/addr-file.h"
#include "config/open-model.h"
#include "engine/delay.h"
#include "nboxd/comm/gather-missing.h"
#include "nboxd/comm/groups.h"
#include "nboxd/frames.h"
#include "nboxd/full/full.h"
#include "nboxd/full/ids.h"
#include "nboxd/job/results.h"
#include "nboxd/loop/warn.h"
#include "nboxd/metrics.h"
#include "nboxd/op/op.h"
#include "nboxd/op/recorded.h"
#include "nboxd/op/run.h"
#include "nboxd/op/wait.h"
#include "nboxd/store/serve/server.h"
#include "nboxd/store/serve/virtual.h"
#include "nboxd/told.h"
#include "op/open.h"
#include "op/unmet.h"

#define TICK_NS (50 * NS_PER_MS)
#define SILENCE_NS (20 * NS_PER_S)
#define LEFT_NS (2 * NS_PER_S) /* server_end_when_left() */
#define NOBODY_NS (60 * NS_PER_S)

char *server_network(const struct server *s, char *buf, size_t size)
{
	struct asked asked = s->live.ops.asked;

	asked.kind = -1;
	return open_model_network(s->config, s->live.ops.delay, &asked, buf, size);
}

/* --- time ------------------------------------------------------------------------- */

/* A program that spawns its own ranks believes in a world and a store of its own, and may wait
 * there for ever: said once, of jobs that begin with nboxd. */
static void tell_silence(struct server *s, uint64_t now_ns)
{
	bool is_used = s->comms.last || s->gathers.n ||
		       (s->store && store_server_counts(s->store).store.n_requests);

	if (s->is_silence_told || is_used || (!s->exited.event && !s->door.event) ||
	    now_ns < s->start_ns + SILENCE_NS)
		return;
	s->is_silence_told = true;
	warn_run(
		"%llu s, and no communicator and no request to the store yet: a program that gives ranks to "
		"processes of its own (mp.spawn, Ray) must believe in %u nodes by its own arguments and meet at this "
		"store: %s as it sets MASTER_ADDR and MASTER_PORT; or start it with torchrun. JAX's coordination "
		"service waits for ranks that nobody plays. Any other job goes on",
		(unsigned long long)(SILENCE_NS / NS_PER_S), s->config->topology.n_nodes,
		s->door.event ? "NBOX_STORE=HOST:PORT" : "--procs 1, and --store HOST:PORT");
}

static void flush_record(struct server *s)
{
	int r = record_flush(s->live.record);

	if (r < 0)
		warn_run(
			"the results cannot be written any more (%s); the job goes on, and what is "
			"lost is counted for the summary",
			strerror(-r));
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t on_tick(void *ctx, uint64_t now_ns)
{
	struct server *s = ctx;
	uint64_t next_ns = failures_tick(&s->failures, now_ns);
	bool is_busy = workers_tick(&s->loop.workers, now_ns);

	processes_tick(&s->processes, now_ns);
	gathers_tick(&s->gathers, now_ns);
	op_tick(&s->live, now_ns);
	if (s->full)
		full_tick(s->full, now_ns);
	recorded_tick(&s->live);
	warn_tick(now_ns);
	tell_silence(s, now_ns);
	is_busy = is_busy || s->gathers.n || s->live.ops.n_open;
	next_ns = min_ns(next_ns, now_ns + (is_busy ? TICK_NS : NS_PER_S));
	if (s->store)
		next_ns = min_ns(next_ns, store_server_tick(s->store, now_ns));
	flush_record(s);
	return next_ns;
}

static uint64_t on_advance(void *ctx, uint64_t now_ns)
{
	struct server *s = ctx;
	uint64_t recorded_ns = recorded_advance(&s->live, now_ns);
	uint64_t next_ns = min_ns(engine_advance(s->live.engine, now_ns), recorded_ns);

	return s->full ? min_ns(full_advance(s->full, now_ns), next_ns) : next_ns;
}

/* --- the end ---------------------------------------------------------------------- */

static void on_stop(void *ctx)
{
	struct server *s = ctx;

	s->notes.is_stopping = true;
	door_close(&s->door);
	listen_stop(&s->listen);
	store_server_stop_listening(s->store);
}

void server_end_when_left(struct server *s)
{
	s->is_once = true;
	s->left_ns = clock_now_ns();
}

void server_hold_leaving(struct server *s)
{
	const struct worker *w;

	DL_FOREACH(s->loop.workers.list, w)
		if (w->state == WORKER_LEAVING)
			fcntl(link_fd(w->link), F_DUPFD_CLOEXEC, 0);
}

/* A worker that has said BYE exits when nboxd has closed its link. Its launcher may wait for that
 * before it starts the next program, so nboxd does not wait for the other workers. */
static void close_leaving(struct server *s)
{
	struct worker *w;

	DL_FOREACH(s->loop.workers.list, w)
		if (w->state == WORKER_LEAVING)
			worker_set_state(w, WORKER_CLOSED);
}

/* With a door the processes that came in by it count: a script among them may run one program after
 * the other. Without one only links do. Fewer of them than real ranks: some process drives several,
 * or others are still to come. */
static bool is_left(void *ctx, uint64_t now_ns)
{
	struct server *s = ctx;
	const struct workers *ws = &s->loop.workers;
	bool has_door = s->door.event != NULL;

	if (!s->is_once)
		return false;
	if (has_door ? workers_any_stays(ws) || !door_is_deserted(&s->door) : ws->n > 0) {
		if (has_door)
			close_leaving(s);
		s->left_ns = now_ns;
		return false;
	}
	if (s->door.n_workers || ws->n_ready_max >= s->cluster.n_real)
		return true;
	return now_ns - s->left_ns >= (ws->n_ready_max ? LEFT_NS : NOBODY_NS);
}

static const struct loop_sink loop_sink = {
	.advance = on_advance,
	.tick = on_tick,
	.is_left = is_left,
	.on_stop = on_stop,
};

void server_run(struct server *s)
{
	loop_run(&s->loop);
}

/* --- what the job's room asks ----------------------------------------------------- */

static pid_t somebody(void *ctx)
{
	const struct server *s = ctx;
	const struct worker *w;

	DL_FOREACH(s->loop.workers.list, w)
		if (w->state == WORKER_READY && worker_is_here(w))
			return (pid_t)w->pid;
	return s->store ? (pid_t)store_server_waiting_pid(s->store) : 0;
}

static uint64_t waits_since_ns(void *ctx)
{
	const struct server *s = ctx;
	uint64_t since_ns = s->store ? store_server_waits_since_ns(s->store) : UINT64_MAX;
	const struct gather *g;

	DL_FOREACH(s->gathers.list, g)
		since_ns = min_ns(since_ns, g->first_ns);
	return since_ns;
}

static const struct processes_sink processes_sink = {
	.somebody = somebody,
	.waits_since_ns = waits_since_ns,
};

/* --- life ------------------------------------------------------------------------- */

/* The folder of models beside this program, or where it was installed to. */
static const char *model_dir(char *buf, size_t size)
{
	static const char *const places[] = {"delaymodels", "../lib/nbox/delaymodels"};
	char dir[PATH_MAX];

	if (file_own_folder(dir, sizeof(dir)) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (snprintf(buf, size, "%s/%s", dir, places[i]) < (int)size &&
		    access(buf, X_OK) == 0)
			return buf;
	}
	return NULL;
}

int server_check(const struct config *c, struct err *err)
{
	char dir[PATH_MAX + 64];
	const char *const dirs[] = {model_dir(dir, sizeof(dir)), NULL};
	struct delay_chain *chain = NULL;
	int r = open_model(c, dirs, &chain, err);

	delay_free(chain);
	return r;
}

static int open_engine(struct server *s, struct err *err)
{
	const struct config *c = s->config;
	char dir[PATH_MAX + 64];
	const char *const dirs[] = {model_dir(dir, sizeof(dir)), NULL};
	int r = open_model(c, dirs, &s->live.ops.delay, err);

	if (r < 0)
		return r;
	if (delay_warning(s->live.ops.delay))
		log_info("%s", delay_warning(s->live.ops.delay));
	r = recorded_open(&s->live, err);
	if (r == 0)
		r = ops_open(&s->live.ops, err);
	if (r < 0)
		return r;
	if (engine_new(&op_sink, NULL, &s->live.engine) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (c->exchange == EXCHANGE_PAYLOAD && payload_map(&s->live.payload, c->chunk_bytes) < 0)
		return err_set(err, ENOMEM, "no memory for messages of %llu bytes",
			       (unsigned long long)c->chunk_bytes);
	return 0;
}

/* For `nbox status`. */
static int write_addr_file(struct server *s, struct err *err)
{
	struct addr_file a = {.pid = (int)getpid()};
	int r;

	if (snprintf(a.addr, sizeof(a.addr), "%s", server_addr(s)) >= (int)sizeof(a.addr))
		return err_set(err, ENAMETOOLONG, "the address is too long for " ADDR_FILE_NAME);
	memcpy(a.token, s->config->token, WIRE_TOKEN_BYTES);
	r = addr_file_write(s->config->out, &a, err);
	s->has_addr_file = r == 0;
	return r;
}

/* What each room stands on. */
static void connect_rooms(struct server *s)
{
	const struct config *c = s->config;
	bool is_full = c->nccl == NCCL_FULL;

	s->cluster = (struct cluster){.topology = &c->topology,
				      .real = c->real,
				      .n_real = c->n_real,
				      .layouts = c->layouts,
				      .n_layouts = c->n_layouts,
				      .classes = c->classes.of};
	s->loop = (struct loop){.sink = &loop_sink,
				.ctx = s,
				.poll_ns = c->poll_ns,
				.is_punctual = c->exchange != EXCHANGE_NONE || is_full};
	s->loop.workers = (struct workers){.sink = &frames_sink, .ctx = s, .token = c->token};
	s->loop.workers.welcome = (struct wire_welcome){
		.world = c->world,
		.n_nodes = c->topology.n_nodes,
		.gpus_per_node = c->topology.gpus_per_node,
		.n_real = (uint32_t)c->n_real,
		.exchange = is_full ? c->traffic : c->exchange,
		.nccl = c->nccl,
		.data = c->data,
		/* members of groups help to answer for the store where a virtual rank is below a
		 * real one */
		.wants_groups = c->store && c->real[c->n_real - 1] != c->n_real - 1,
	};
	s->loop.workers.classes = c->classes.of;
	s->capacity.workers = &s->loop.workers;
	s->listen = (struct listen){.loop = &s->loop, .capacity = &s->capacity};
	s->notes.config = c;
	s->processes = (struct processes){.sink = &processes_sink,
					  .ctx = s,
					  .players = &s->players,
					  .exited = &s->exited,
					  .gpus_per_node = c->topology.gpus_per_node};
	s->comms = (struct comms){.sink = &op_comm_sink,
				  .on_dead = gathers_on_dead,
				  .on_dead_ctx = &s->gathers,
				  .config = c,
				  .cluster = &s->cluster,
				  .ops = &s->live.ops,
				  .notes = &s->notes};
	s->gathers = (struct gathers){.comms = &s->comms,
				      .loop = &s->loop,
				      .players = &s->players,
				      .processes = &s->processes};
	s->live = (struct live){
		.ops = {.sink = &op_live_sink, .config = c, .cluster = &s->cluster},
		.comms = &s->comms,
		.failures = &s->failures,
	};
}

static int open_store(struct server *s, struct err *err)
{
	const struct store_env env = {.config = s->config,
				      .loop = &s->loop,
				      .capacity = &s->capacity,
				      .players = &s->players,
				      .processes = &s->processes,
				      .hooks = &groups_hooks,
				      .hooks_ctx = s->groups};
	int r = store_server_open(&env, s->config->store, &s->store, err);

	if (r < 0)
		return r;
	s->gathers.store = s->store;
	s->capacity.ctx = s->store;
	s->capacity.silent_until = store_server_silent_until;
	s->capacity.oust_silent = store_server_oust_silent;
	return 0;
}

static int open_full(struct server *s, struct err *err)
{
	int r = full_open(s->loop.base, &s->listen, &s->comms, &s->full, err);

	if (r < 0)
		return r;
	s->comms.full = s->full;
	s->loop.workers.welcome.tunes = delay_param_value(s->live.ops.delay, "decisions") != NULL;
	s->comms.make_id = full_make_id;
	return 0;
}

static int open_rooms(struct server *s, struct err *err)
{
	const struct config *c = s->config;
	int r;

	if (players_init(&s->players, &s->cluster) < 0 ||
	    failures_init(&s->failures, &s->comms, &s->loop) < 0 ||
	    groups_new(&s->cluster, &s->groups) < 0)
		return err_set(err, ENOMEM, "out of memory");
	s->gathers.groups = s->groups;
	if ((r = open_engine(s, err)) < 0)
		return r;
	/* The address first: a second nboxd must not touch the first one's files. */
	if ((r = listen_open(&s->listen, c, err)) < 0)
		return r;
	if (loop_open(&s->loop) < 0 || listen_start(&s->listen) < 0)
		return err_set(err, ENOMEM, "cannot set up libevent");
	if (c->nccl == NCCL_FULL && (r = open_full(s, err)) < 0)
		return r;
	if (c->store && (r = open_store(s, err)) < 0)
		return r;
	if (c->metrics && (r = metrics_open(s, &s->metrics, err)) < 0)
		return r;
	if (!c->out)
		return 0;
	r = results_open(c, s->start_ns, &s->live.record, err);
	s->notes.record = s->live.record;
	return r < 0 ? r : write_addr_file(s, err);
}

int server_open(const struct config *c, struct server **ret, struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->config = c;
	s->start_ns = clock_now_ns();
	connect_rooms(s);
	capacity_raise_limit();
	r = open_rooms(s, err);
	if (r < 0)
		server_close(s);
	else
		*ret = s;
	return r;
}

static void note(void *ctx, const char *sentence)
{
	notes_say(ctx, "nboxd", "%s", sentence);
}

struct server *server_close(struct server *s)
{
	int r;

	if (!s)
		return NULL;
	s->loop.workers.is_stopping = s->notes.is_stopping = true;
	recorded_finish(&s->live);
	told_note_decided(s);
	ops_tell_unmet(&s->live.ops, note, &s->notes);
	failures_note_unmet(&s->failures);
	door_close(&s->door);
	exited_close(&s->exited); /* first: nbox sees by it that a job that fails now does so for
				     want of us */
	if (s->has_addr_file)
		addr_file_remove(s->config->out);
	while (s->loop.workers.list)
		worker_remove(s->loop.workers.list);
	gathers_deinit(&s->gathers);
	while (s->comms.by_number)
		comm_free(s->comms.by_number);
	store_server_close(s->store);
	groups_free(s->groups);
	metrics_close(s->metrics);
	if (s->full)
		full_note(s->full, &s->notes); /* all communicators have ended */
	full_close(s->full);
	listen_close(&s->listen);
	loop_close(&s->loop);
	engine_free(s->live.engine);
	ops_close(&s->live.ops);
	recorded_close(&s->live);
	free(s->job_texts);
	flush_record(s);
	r = record_close(s->live.record);
	if (r < 0)
		warn_run("the record could not be closed (%s): the last ops may be missing in the "
			 "results",
			 strerror(-r));
	payload_unmap(&s->live.payload);
	failures_deinit(&s->failures);
	notes_deinit(&s->notes);
	processes_deinit(&s->processes);
	players_deinit(&s->players);
	free(s);
	return NULL;
}
