/* See points.h. Notes run in the order in which they were posted: a point is known here before an
 * op that waits for it arrives, and what it waited for has passed, and been told, before its stamp.
 */
#include "shim/progress/points.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "shim/edges/table.h"
#include "shim/gate/device-choose.h"
#include "shim/progress/note.h"
#include "shim/progress/session.h"

#define SLOTS 256

struct point {
	struct edges_point edge;
	struct note made, stamped;
	struct point *next;
	_Atomic bool is_stamped; /* the note is posted; release: pairs with run_stamped() */
	bool is_sent, has_polled;
	uint32_t replay; /* of a graph's point: the last one */
};

static struct point
	*points[SLOTS]; /* the progress thread's: awaiting their stamp; of graphs: for good */
/* World rank + 1; 0: no communicator yet. A device without one is its process's first rank's. */
static _Atomic uint32_t ranks[TABLE_DEVICES], first_rank;

static bool is_captured(const struct point *p)
{
	return p->edge.m.name & WIRE_NAME_CAPTURED && !p->edge.launch;
}

static struct point **slot_of(uint64_t name)
{
	return &points[name % SLOTS];
}

static unsigned long long order(uint64_t name)
{
	return name & ~WIRE_NAME_CAPTURED;
}

void points_log(const char *what, uint64_t name, uint32_t stream, const struct wire_dep *deps,
		uint32_t n)
{
	char text[256] = "";
	size_t used = 0;

	if (!log_enabled(LOG_DEBUG))
		return;
	for (uint32_t i = 0; i < n && used + 24 < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %llu%s",
					 order(deps[i].name), deps[i].is_same_stream ? "." : "");
	log_debug("%s %llu on stream %u after%s", what, order(name), stream, text);
}

static void send_point(const struct point *p, uint64_t time_ns)
{
	char body[sizeof(struct wire_point) + sizeof(p->edge.deps)];
	struct wire_point m = p->edge.m;
	size_t bytes = m.n_deps * sizeof(struct wire_dep);
	uint32_t rank = atomic_load_explicit(&ranks[p->edge.device], memory_order_relaxed);

	if (!rank)
		rank = atomic_load_explicit(&first_rank, memory_order_relaxed);
	if (!rank)
		return;
	m.time_ns = session_to_daemon(time_ns);
	m.call_ns = m.call_ns ? session_to_daemon(m.call_ns) : 0;
	m.work_ns = m.work_ns ? session_to_daemon(m.work_ns) : 0;
	points_log(m.kind == WIRE_POINT_HOST ? "host" : "point", m.name, m.stream, p->edge.deps,
		   m.n_deps);
	memcpy(body, &m, sizeof(m));
	memcpy(body + sizeof(m), p->edge.deps, bytes);
	session_send(WIRE_POINT, 0, rank - 1, 0, body, sizeof(m) + bytes);
}

static void tell(struct point *p, uint64_t time_ns)
{
	uint64_t stamp_ns = atomic_load_explicit(&p->edge.stamp.time_ns, memory_order_relaxed);

	if (p->is_sent || is_captured(p))
		return;
	p->is_sent = true;
	if (stamp_ns && stamp_ns < time_ns)
		time_ns = stamp_ns;
	points_before(p->edge.deps, p->edge.m.n_deps, time_ns, 0);
	send_point(p, time_ns);
}

/* The launches of one graph have one name, and several may be under way. */
void points_before(const struct wire_dep *deps, uint32_t n, uint64_t time_ns, uint32_t replay)
{
	for (uint32_t i = 0; i < n; i++)
		for (struct point *p = *slot_of(deps[i].name); p; p = p->next)
			if (p->edge.m.name == deps[i].name && p->edge.launch <= replay)
				tell(p, time_ns);
}

/* A host point comes after the ops that it waited for: a device that is polled may not have noted
 * yet that they have passed. */
static void run_made(struct note *n)
{
	struct point *p = container_of(n, struct point, made), **slot = slot_of(p->edge.m.name);
	const struct device *dev = device_chosen();

	if (p->edge.m.kind == WIRE_POINT_STREAM) {
		p->next = *slot;
		*slot = p;
		return;
	}
	if (dev->poll && !p->has_polled) {
		p->has_polled = true;
		dev->poll();
		note_post(n, NOTE_LAZY);
		return;
	}
	tell(p, p->edge.m.time_ns);
	free(p);
}

static void run_stamped(struct note *n)
{
	struct point *p = container_of(n, struct point, stamped), **at = slot_of(p->edge.m.name);
	uint64_t time_ns;

	/* acquire: pairs with on_stamped(); a replay may stamp again at once */
	atomic_exchange_explicit(&p->is_stamped, false, memory_order_acquire);
	time_ns = atomic_load_explicit(&p->edge.stamp.time_ns, memory_order_relaxed);
	if (is_captured(p)) {
		points_before(p->edge.deps, p->edge.m.n_deps, time_ns, ++p->replay);
		send_point(p, time_ns);
		return;
	}
	tell(p, time_ns);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	device_chosen()->stamp_deinit(&p->edge.stamp);
	free(p);
}

static void on_stamped(struct stamp *st)
{
	struct point *p = container_of(st, struct point, edge.stamp);

	if (!atomic_exchange_explicit(&p->is_stamped, true, memory_order_acq_rel))
		note_post(&p->stamped, NOTE_LAZY);
}

static struct edges_point *make(void)
{
	struct point *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->edge.stamp.on_stamped = on_stamped;
	p->made.run = run_made;
	p->stamped.run = run_stamped;
	return &p->edge;
}

static void made(struct edges_point *edge)
{
	note_post(&container_of(edge, struct point, edge)->made,
		  edge->m.kind == WIRE_POINT_HOST ? NOTE_WAKE : NOTE_LAZY);
}

const struct edges_sink points_sink = {.make = make, .made = made};

void points_set_rank(int device, uint32_t world_rank)
{
	uint32_t none = 0;

	if (device >= 0 && device < TABLE_DEVICES)
		atomic_store_explicit(&ranks[device], world_rank + 1, memory_order_relaxed);
	atomic_compare_exchange_strong(&first_rank, &none, world_rank + 1);
}
