/* See edges.h. The lock is held for the tables only, never in a call of the device that may wait
 * for room in a stream. */
#include "shim/edges/edges.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "shim/edges/table.h"

#define STREAM_LEGACY ((device_stream)1) /* cudaStreamLegacy, cudaStreamPerThread */
#define STREAM_PER_THREAD ((device_stream)2)
#define BLIND_OPS 100
#define WAIT_NS 100000 /* less is the call itself */
#define END_NS 100000000

/* The streams that stamp for one of the job's: outside of captures, and in them. Kept for the next
 * stream when that one is destroyed. */
struct stamper {
	struct stamper *next_free;
	int device; /* all of it is on that: CUDA records no event on another one's streams */
	_Atomic(device_stream) streams[2];
	_Atomic(device_event) joined, place;
};

static struct {
	pthread_mutex_t lock;
	struct table table;
	struct stamper *free[TABLE_DEVICES];
	const struct device *dev;
	const struct edges_sink *sink;
	_Atomic bool is_on; /* release: pairs with edges_begin(), makes @dev and @sink visible */
	_Atomic bool is_seen;
	_Atomic uint32_t n_ops;
	/* Ops, records, waits of the host, captures and streams destroyed: since then it is not
	 * known any more what a stream has had, or which it is. */
	_Atomic uint32_t n_changes;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Held for reading from the look at the table to the stamp. For writing before an event ends: it
 * may be the last record on a stream on which another thread waits for another event. The thread
 * that stamps may itself wait for room in a stream, which another rank of the process has to make.
 * So a thread that ends an event waits for END_NS at most, and then takes the small risk. */
static pthread_rwlock_t stamping = PTHREAD_RWLOCK_INITIALIZER;

EDGES_THREAD unsigned int edges_quiet;
/* It has enqueued ops, or recorded or waited for events: its waits are the job's. Others only look
 * after what is under way. */
static EDGES_THREAD bool is_enqueuer;

void edges_open(const struct device *dev, const struct edges_sink *sink)
{
	pthread_mutex_lock(&g.lock);
	if (!g.dev) {
		g.dev = dev;
		g.sink = sink;
	}
	atomic_store_explicit(&g.is_on, true, memory_order_release);
	pthread_mutex_unlock(&g.lock);
}

void edges_in_child(void)
{
	atomic_store_explicit(&g.is_on, false, memory_order_relaxed);
	pthread_mutex_init(&g.lock, NULL);
	pthread_rwlock_init(&stamping, NULL);
}

bool edges_begin(uint64_t *ret_call_ns)
{
	if (edges_quiet)
		return false;
	if (!atomic_load_explicit(&g.is_seen, memory_order_relaxed))
		atomic_store_explicit(&g.is_seen, true, memory_order_relaxed);
	if (!atomic_load_explicit(&g.is_on, memory_order_acquire))
		return false;
	edges_quiet++;
	*ret_call_ns = clock_now_ns();
	return true;
}

void edges_end(void)
{
	edges_quiet--;
}

bool edges_are_blind(void)
{
	return !atomic_load_explicit(&g.is_seen, memory_order_relaxed) &&
	       atomic_load_explicit(&g.n_ops, memory_order_relaxed) > BLIND_OPS;
}

/* --- streams -------------------------------------------------------------------------- */

/* What the device says of a stream: asked without the lock. */
struct look {
	device_stream handle;
	int device;
	uintptr_t thread;
	uint64_t capture;
};

static int device_now(void)
{
	int device = 0;

	if (g.dev->get(&device) || device < 0 || device >= TABLE_DEVICES)
		return 0;
	return device;
}

static struct look look_at(device_stream s)
{
	struct look l = {.handle = s, .device = device_now(), .capture = g.dev->capture_id(s)};

	if (s == STREAM_LEGACY)
		l.handle = NULL;
	if (s == STREAM_PER_THREAD)
		l.thread = (uintptr_t)&is_enqueuer;
	return l;
}

static struct stamper *stamper_take(int device)
{
	struct stamper *st = g.free[device];

	if (st) {
		g.free[device] = st->next_free;
		return st;
	}
	st = calloc(1, sizeof(*st));
	if (st)
		st->device = device;
	return st;
}

/* Which need not be the thread's. */
static int device_of(const struct look *l)
{
	int device;

	if (!l->handle || l->thread || g.dev->stream_device(l->handle, &device) || device < 0 ||
	    device >= TABLE_DEVICES)
		return l->device;
	return device;
}

/* Under the lock. */
static struct table_stream *use(const struct look *l)
{
	struct table_stream *s = table_stream(&g.table, l->handle, l->device, l->thread);

	if (!s)
		return NULL;
	if (!s->number) {
		s->number = ++g.table.n_streams;
		s->is_legacy = !l->handle;
		s->is_blocking = s->is_legacy || l->thread || g.dev->is_blocking(l->handle);
		s->device = device_of(l);
		s->stamper = stamper_take(s->device);
	}
	table_use(&g.table, s, l->capture);
	return s;
}

/* --- points --------------------------------------------------------------------------- */

static uint32_t deps_of(const struct behind *b, uint32_t stream, struct wire_dep *ret)
{
	for (uint32_t i = 0; i < b->n; i++)
		ret[i] = (struct wire_dep){.name = b->edges[i].name,
					   .is_same_stream = b->edges[i].stream == stream};
	return b->n;
}

static struct edges_point *tell(const struct table_point *t, enum wire_point_kind kind,
				uint64_t call_ns, uint64_t time_ns)
{
	struct edges_point *p = g.sink->make();

	if (!p)
		return NULL;
	p->device = t->device;
	p->launch = t->launch;
	p->m = (struct wire_point){.name = t->name,
				   .time_ns = time_ns,
				   .call_ns = call_ns,
				   .work_ns = t->work_ns,
				   .host = t->host,
				   .kind = kind,
				   .stream = t->stream,
				   .n_deps = deps_of(&t->behind, t->stream, p->deps)};
	g.sink->made(p);
	return p;
}

/* Return: the device to go back to. */
static int go_to(int device)
{
	int before = DEVICE_NONE;

	if (!g.dev->get(&before) && before != DEVICE_NONE)
		device_select(g.dev, device);
	return before;
}

/* Return: NULL: the device has none. Two threads may make one each: the one that comes late is
 * kept by nobody, and does nothing. */
static device_stream stream_of(struct stamper *st, bool is_captured)
{
	device_stream s = atomic_load(&st->streams[is_captured]), now = NULL;
	int before, r;

	if (s)
		return s;
	before = go_to(st->device);
	r = g.dev->stream_new(&s);
	device_select(g.dev, before);
	if (r)
		return NULL;
	return atomic_compare_exchange_strong(&st->streams[is_captured], &now, s) ? s : now;
}

static device_event event_of(const struct stamper *st, _Atomic(device_event) *known)
{
	device_event ev = atomic_load(known), now = NULL;
	int before, r;

	if (ev)
		return ev;
	before = go_to(st->device);
	r = g.dev->event_new(&ev);
	device_select(g.dev, before);
	if (r)
		return NULL;
	return atomic_compare_exchange_strong(known, &now, ev) ? ev : now;
}

/* @waiter: the stream that waits for the point's event. */
static void stamp(const struct table_point *t, device_stream waiter)
{
	struct edges_point *p = tell(t, WIRE_POINT_STREAM, t->call_ns, 0);
	device_stream s = p && t->stamper ? stream_of(t->stamper, t->capture) : NULL;
	device_event joined;

	if (!s || g.dev->stream_wait(s, t->event) || g.dev->stamp(s, &p->stamp, t->capture))
		return; /* the first op that waits for it tells the time */
	joined = t->capture ? event_of(t->stamper, &t->stamper->joined) : NULL;
	if (joined && !g.dev->event_record(joined, s))
		g.dev->stream_wait(waiter, joined);
}

/* --- the job's calls ---------------------------------------------------------------------- */

void edges_worked(device_stream handle)
{
	static EDGES_THREAD struct {
		device_stream handle;
		uint32_t n_changes;
	} last = {.n_changes = UINT32_MAX}; /* that has had work since */
	uint32_t n = atomic_load_explicit(&g.n_changes, memory_order_relaxed);
	struct table_stream *s;
	uint64_t now_ns;
	struct look l;

	if ((handle == last.handle && n == last.n_changes) || !edges_begin(&now_ns))
		return;
	l = look_at(handle);
	pthread_mutex_lock(&g.lock);
	s = use(&l);
	if (s)
		table_work(s, now_ns);
	pthread_mutex_unlock(&g.lock);
	last.handle = handle;
	last.n_changes = n;
	edges_end();
}

void edges_recorded(device_event ev, device_stream handle, uint64_t call_ns)
{
	struct look l = look_at(handle);
	struct table_stream *s;

	is_enqueuer = true;
	pthread_mutex_lock(&g.lock);
	s = use(&l);
	if (s)
		table_record(&g.table, ev, s, call_ns);
	atomic_fetch_add_explicit(&g.n_changes, 1, memory_order_relaxed);
	pthread_mutex_unlock(&g.lock);
}

/* What the stream computes before the wait is known only from a place just before it. */
void edges_waits(device_stream handle, device_event event, uint64_t call_ns)
{
	struct look l = look_at(handle);
	struct stamper *st = NULL;
	struct table_stream *s;
	struct table_event *ev;
	device_event place;

	pthread_mutex_lock(&g.lock);
	s = use(&l);
	ev = table_event(&g.table, event);
	if (s && ev && table_lacks_place(s, ev))
		st = s->stamper;
	pthread_mutex_unlock(&g.lock);
	place = st ? event_of(st, &st->place) : NULL;
	if (place && !g.dev->event_record(place, handle))
		edges_recorded(place, handle, call_ns);
}

void edges_waited(device_stream handle, device_event event)
{
	struct look l = look_at(handle);
	struct table_point points[2];
	struct table_stream *s;
	struct table_event *ev;
	unsigned int n = 0;

	is_enqueuer = true;
	pthread_rwlock_rdlock(&stamping);
	pthread_mutex_lock(&g.lock);
	s = use(&l);
	ev = table_event(&g.table, event);
	if (s && ev)
		n = table_wait(&g.table, s, ev, points);
	pthread_mutex_unlock(&g.lock);
	for (unsigned int i = 0; i < n; i++)
		stamp(&points[i], handle);
	pthread_rwlock_unlock(&stamping);
}

/* Under the lock, which it gives back. */
static void synced(int device, const struct behind *b, uint64_t call_ns)
{
	uint64_t now = clock_now_ns();
	struct table_point point;
	bool is_point = table_sync(&g.table, device, b, now - call_ns > WAIT_NS, &point);

	atomic_fetch_add_explicit(&g.n_changes, 1, memory_order_relaxed);
	pthread_mutex_unlock(&g.lock);
	if (is_point)
		tell(&point, WIRE_POINT_HOST, call_ns, now);
}

void edges_event_synced(device_event event, uint64_t call_ns)
{
	struct table_event *ev;

	if (!is_enqueuer)
		return;
	pthread_mutex_lock(&g.lock);
	ev = table_event(&g.table, event);
	if (ev && !ev->capture) {
		if (ev->stream && ev->stream->last == ev && !ev->stream->later_work_ns)
			table_idle(ev->stream);
		synced(ev->device, &ev->behind, call_ns);
	} else {
		pthread_mutex_unlock(&g.lock);
	}
}

void edges_stream_synced(device_stream handle, uint64_t call_ns)
{
	struct look l;
	struct table_stream *s;

	if (!is_enqueuer)
		return;
	l = look_at(handle);
	pthread_mutex_lock(&g.lock);
	s = use(&l);
	if (s && !l.capture) {
		table_idle(s);
		synced(s->device, &s->behind, call_ns);
	} else {
		pthread_mutex_unlock(&g.lock);
	}
}

void edges_device_synced(uint64_t call_ns)
{
	struct behind b;
	int device;

	if (!is_enqueuer)
		return;
	device = device_now();
	pthread_mutex_lock(&g.lock);
	table_device(&g.table, device, &b);
	synced(device, &b, call_ns);
}

static bool lock_stamping(void)
{
	struct timespec until;

	if (!pthread_rwlock_trywrlock(&stamping))
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += END_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !pthread_rwlock_timedwrlock(&stamping, &until);
}

void edges_forget_event(device_event ev)
{
	bool is_alone = lock_stamping();

	pthread_mutex_lock(&g.lock);
	table_forget_event(&g.table, ev);
	pthread_mutex_unlock(&g.lock);
	if (is_alone)
		pthread_rwlock_unlock(&stamping);
}

void edges_forget_stream(device_stream handle)
{
	struct stamper *st;
	struct table_stream *s;

	pthread_mutex_lock(&g.lock);
	atomic_fetch_add_explicit(&g.n_changes, 1, memory_order_relaxed);
	s = table_stream(&g.table, handle, device_now(), 0);
	st = s ? table_forget_stream(&g.table, s) : NULL;
	if (st) {
		st->next_free = g.free[st->device];
		g.free[st->device] = st;
	}
	pthread_mutex_unlock(&g.lock);
}

/* --- graphs ------------------------------------------------------------------------------- */

uint64_t edges_capture(device_stream handle)
{
	return g.dev->capture_id(handle);
}

void edges_captured(device_stream handle, uint64_t capture, const void *graph)
{
	struct look l = look_at(handle);
	struct table_stream *s;

	pthread_mutex_lock(&g.lock);
	atomic_fetch_add_explicit(&g.n_changes, 1, memory_order_relaxed);
	s = table_stream(&g.table, l.handle, l.device, l.thread);
	if (s)
		table_captured(&g.table, s, capture, graph);
	pthread_mutex_unlock(&g.lock);
}

void edges_graph_copied(const void *to, const void *from)
{
	pthread_mutex_lock(&g.lock);
	table_copy_graph(&g.table, to, from);
	pthread_mutex_unlock(&g.lock);
}

void edges_launches(const void *exec, device_stream handle, uint64_t call_ns)
{
	struct look l = look_at(handle);
	struct table_graph *graph;
	struct table_point point;
	struct table_stream *s;
	struct table_event *ev;
	struct stamper *st;
	device_event place;

	pthread_mutex_lock(&g.lock);
	s = use(&l);
	st = s ? s->stamper : NULL;
	graph = st && !l.capture ? table_graph(&g.table, exec) : NULL;
	if (s && !graph)
		table_work(s, call_ns);
	pthread_mutex_unlock(&g.lock);
	place = graph ? event_of(st, &st->place) : NULL;
	if (!place || g.dev->event_record(place, handle))
		return;
	edges_recorded(place, handle, call_ns);
	pthread_mutex_lock(&g.lock);
	ev = table_event(&g.table, place);
	s = ev ? ev->stream : NULL;
	if (s)
		table_launch(&g.table, ev, graph, &point);
	pthread_mutex_unlock(&g.lock);
	if (s)
		stamp(&point, NULL);
}

void edges_forget_graph(const void *graph)
{
	edges_graph_copied(graph, NULL);
}

/* --- ops ---------------------------------------------------------------------------------- */

uint64_t edges_place(void)
{
	uint64_t at;

	is_enqueuer = true;
	pthread_mutex_lock(&g.lock);
	at = ++g.table.at;
	pthread_mutex_unlock(&g.lock);
	return at;
}

void edges_ops(device_stream handle, uint64_t at, uint64_t call_ns, struct edges_ops *ret)
{
	struct look l = look_at(handle);
	struct table_stream *s;

	*ret = (struct edges_ops){.at = at, .capture = l.capture};
	atomic_fetch_add_explicit(&g.n_ops, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&g.n_changes, 1, memory_order_relaxed);
	pthread_mutex_lock(&g.lock);
	s = use(&l);
	if (s) {
		ret->work_ns = s->work_ns;
		table_op(s);
		ret->stream = s->number;
		ret->n_deps = deps_of(&s->behind, s->number, ret->deps);
		ret->call_ns = l.capture ? 0 : call_ns;
		ret->host = l.capture ? 0 : g.table.hosts[s->device].last;
	}
	pthread_mutex_unlock(&g.lock);
}

uint64_t edges_name(const struct edges_ops *ops)
{
	uint64_t name;

	pthread_mutex_lock(&g.lock);
	name = table_name(&g.table, ops->capture);
	pthread_mutex_unlock(&g.lock);
	return name;
}

void edges_ops_end(device_stream handle, const struct edges_ops *ops, uint64_t name,
		   struct edge *ret)
{
	struct look l = look_at(handle);
	struct table_stream *s;

	*ret = (struct edge){.name = name, .at = ops->at, .stream = ops->stream, .is_op = true};
	pthread_mutex_lock(&g.lock);
	s = use(&l);
	if (s) {
		behind_drop_before(&s->behind, ops->at);
		behind_add(&s->behind, ret);
	}
	pthread_mutex_unlock(&g.lock);
}

void edges_join(device_stream handle, device_stream other)
{
	struct look a = look_at(handle), b = look_at(other);
	struct table_stream *s, *from;

	pthread_mutex_lock(&g.lock);
	from = use(&b);
	s = use(&a);
	if (s && from)
		behind_merge(&s->behind, &from->behind);
	pthread_mutex_unlock(&g.lock);
}

void edges_follow(device_stream handle, const struct edge *e)
{
	struct look l = look_at(handle);
	struct table_stream *s;

	pthread_mutex_lock(&g.lock);
	s = use(&l);
	if (s)
		behind_add(&s->behind, e);
	pthread_mutex_unlock(&g.lock);
}
