/* See actor.h. The lower number of two devices accepts, the higher connects and says who it is. A
 * message is a part of a task: hdr.seq the task, hdr.index the part, hdr.lane how many have passed
 * it on. Whoever receives it passes it on at once; no message is taken before all links are there.
 */
#include "nbox/reshard/actor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "mesh/route.h"
#include "nbox/reshard/tile.h"

#define PATIENCE_NS (30 * NS_PER_S)
#define PATIENCE_MS 30000
#define SLEEP_MS 100
#define NOBODY UINT32_MAX
#define HELLO UINT64_MAX /* hdr.index */

struct peer {
	struct link *link; /* owned; NULL: none */
	struct actor *of;
	uint32_t device; /* NOBODY: it has not said it */
	bool is_closed;
};

/* A task that comes here. */
struct flow {
	unsigned char *bytes; /* owned; NULL: it does not */
	uint64_t left;
	uint32_t place;
};

struct actor {
	const struct actor_world *world;
	uint32_t device;
	bool is_source, is_ready; /* all links are there */
	struct tile tile;
	struct peer peers[VERIFY_DEVICES];
	struct peer *by_device[VERIFY_DEVICES];
	uint32_t n_peers;
	struct flow *flows;     /* owned; of each task */
	unsigned char **packed; /* owned; of each task that this device sends */
	uint64_t awaited;       /* bytes */
	uint64_t unsent;        /* messages */
	uint64_t moved_ns;
	struct actor_result *result;
};

static const struct mesh_reshard *reshard_of(const struct actor *a)
{
	return a->world->verify->reshard;
}

/* Keeps the first error. */
static int fail(struct actor *a, int code, const char *what, const char *why)
{
	if (!a->result->code)
		a->result->code =
			err_set(&a->result->err, -code, "device %u: %s: %s", a->device, what, why);
	return a->result->code;
}

/* --- who sends what -------------------------------------------------------------------------- */

uint32_t actor_pieces(const struct verify *v, const struct mesh_task *task)
{
	if (v->net->k == MESH_K_BEST)
		return mesh_best_k(task->bytes, task->to, v->net);
	return v->net->k;
}

static uint32_t sources(const struct verify *v)
{
	return v->reshard->src.hosts * v->reshard->src.devices;
}

uint32_t actor_receiver(const struct verify *v, uint32_t task, uint32_t place)
{
	return sources(v) + mesh_task_receiver(v->reshard, task, place);
}

uint32_t actor_sender(const struct verify *v, const struct turn *turn)
{
	return mesh_task_sender(v->reshard, turn->task, turn->sender);
}

/* Of all hosts: those of the destination behind those of the source. */
static uint32_t host_of(const struct verify *v, uint32_t device)
{
	const struct mesh_reshard *r = v->reshard;

	return device < sources(v) ? device / r->src.devices
				   : r->src.hosts + (device - sources(v)) / r->dst.devices;
}

static void part_of(const struct actor *a, uint32_t task, uint32_t number, struct mesh_part *ret)
{
	const struct verify *v = a->world->verify;
	const struct mesh_task *t = &v->reshard->tasks[task];

	mesh_part(v->strategy, t->bytes, t->to, actor_pieces(v, t), number, ret);
}

/* --- messages ----------------------------------------------------------------------------- */

static int send_part(struct actor *a, uint32_t to, const struct wire_hdr *like, uint64_t hops,
		     const void *body, uint64_t bytes)
{
	struct wire_hdr h;
	int r;

	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.seq = like->seq;
	h.index = like->index;
	h.lane = (uint16_t)hops;
	r = link_send(a->by_device[to]->link, &h, body, 0);
	if (r < 0)
		return fail(a, r, "cannot send", strerror(-r));
	a->unsent++;
	if (host_of(a->world->verify, a->device) == host_of(a->world->verify, to))
		a->result->inside_bytes += bytes;
	else
		a->result->crossing_bytes += bytes;
	return 0;
}

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct peer *p = owner;
	struct actor *a = p->of;
	struct mesh_part part;

	(void)l;
	if (h->index == HELLO)
		return 0;
	if (!a->is_ready)
		return LINK_HOLD;
	if (h->seq >= reshard_of(a)->n || !a->flows[h->seq].bytes)
		return fail(a, -EPROTO, "a message", "of a task that does not come here");
	part_of(a, (uint32_t)h->seq, (uint32_t)h->index, &part);
	if (h->body_bytes != part.bytes || a->flows[h->seq].left < part.bytes)
		return fail(a, -EPROTO, "a message", "it is longer or shorter than its part");
	*ret_body = a->flows[h->seq].bytes + part.from;
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct peer *p = owner;
	struct actor *a = p->of;
	const struct verify *v = a->world->verify;
	struct mesh_part part;
	struct flow *flow;

	(void)l;
	if (h->index == HELLO) {
		p->device = h->rank;
		return 0;
	}
	flow = &a->flows[h->seq];
	flow->left -= h->body_bytes;
	a->awaited -= h->body_bytes;
	part_of(a, (uint32_t)h->seq, (uint32_t)h->index, &part);
	if (h->lane >= part.forwards)
		return 0;
	return send_part(a,
			 actor_receiver(v, (uint32_t)h->seq,
					mesh_next(v->strategy, reshard_of(a)->tasks[h->seq].to,
						  flow->place)),
			 h, h->lane + 1u, body, h->body_bytes);
}

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	struct peer *p = owner;

	(void)l;
	(void)cookie;
	p->of->unsent--;
}

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct peer *p = owner;

	(void)l;
	p->is_closed = true;
	if (code < 0)
		fail(p->of, code, "a link broke", why);
}

static const struct link_events events = {on_header, on_frame, on_sent, on_closed};

/* --- links --------------------------------------------------------------------------------- */

static struct peer *add_peer(struct actor *a)
{
	struct peer *p = &a->peers[a->n_peers++];

	*p = (struct peer){.of = a, .device = NOBODY};
	return p;
}

/* Moves what can be moved now, or waits a moment for something. Return: 0; a negative errno. */
static int step(struct actor *a)
{
	struct pollfd fds[VERIFY_DEVICES];
	bool is_idle = true;
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n_peers; i++)
		if (!a->peers[i].is_closed && link_progress(a->peers[i].link) > 0)
			is_idle = false;
	if (a->result->code)
		return a->result->code;
	if (!is_idle) {
		a->moved_ns = clock_now_ns();
		return 0;
	}
	if (clock_now_ns() - a->moved_ns > PATIENCE_NS)
		return fail(a, -ETIMEDOUT, "waits", "nothing has come for 30 s");
	for (uint32_t i = 0; i < a->n_peers; i++) {
		struct link *l = a->peers[i].link;

		if (a->peers[i].is_closed)
			continue;
		if (!link_arm(l))
			return 0;
		fds[n++] = (struct pollfd){.fd = link_fd(l), .events = link_poll_events(l)};
	}
	poll(fds, n, SLEEP_MS);
	return 0;
}

static int connect_to(struct actor *a, uint32_t device)
{
	const char *addr = listener_addr(a->world->listeners[device]);
	struct peer *p = add_peer(a);
	struct err err = {""};
	struct wire_hdr h;
	int r = link_connect(addr, PATIENCE_MS, &events, p, &p->link, &err);

	if (r < 0)
		return fail(a, r, "cannot connect", err.text);
	p->device = device;
	wire_hdr_init(&h, WIRE_MESSAGE, 0);
	h.index = HELLO;
	h.rank = a->device;
	r = link_send_copy(p->link, &h, NULL);
	while (r == 0 && link_queued_bytes(p->link))
		r = link_progress(p->link) < 0 ? -EPIPE : 0;
	return r < 0 ? fail(a, r, "cannot say hello", strerror(-r)) : 0;
}

static int accept_one(struct actor *a, struct listener *l)
{
	uint64_t due_ns = clock_now_ns() + PATIENCE_NS;
	struct pollfd fd = {.fd = listener_fd(l), .events = POLLIN};
	struct peer *p = add_peer(a);
	struct err err = {""};
	int r;

	while ((r = link_accept(l, &events, p, &p->link, &err)) == -EAGAIN) {
		if (clock_now_ns() > due_ns)
			return fail(a, -ETIMEDOUT, "waits", "nobody has connected for 30 s");
		poll(&fd, 1, SLEEP_MS);
	}
	if (r < 0)
		return fail(a, r, "cannot accept", err.text);
	while (r == 0 && p->device == NOBODY && !p->is_closed)
		r = step(a);
	if (r == 0 && (p->device >= a->world->n || a->by_device[p->device]))
		return fail(a, -EPROTO, "a link", "of nobody");
	return r;
}

static int join(struct actor *a)
{
	const bool *is_joined = a->world->is_joined[a->device];
	int r = 0;

	a->moved_ns = clock_now_ns();
	for (uint32_t d = 0; r == 0 && d < a->device; d++)
		if (is_joined[d])
			r = connect_to(a, d);
	for (uint32_t d = a->device + 1; r == 0 && d < a->world->n; d++)
		if (is_joined[d])
			r = accept_one(a, a->world->listeners[a->device]);
	for (uint32_t i = 0; r == 0 && i < a->n_peers; i++)
		a->by_device[a->peers[i].device] = &a->peers[i];
	a->is_ready = true;
	for (uint32_t i = 0; r == 0 && i < a->n_peers; i++)
		if (!a->peers[i].is_closed)
			link_resume(a->peers[i].link);
	return r;
}

/* --- the tile ------------------------------------------------------------------------------- */

static void actor_deinit(struct actor *a)
{
	for (uint32_t i = 0; i < a->n_peers; i++)
		link_free(a->peers[i].link);
	for (uint32_t i = 0; i < reshard_of(a)->n; i++) {
		if (a->flows)
			free(a->flows[i].bytes);
		if (a->packed)
			free(a->packed[i]);
	}
	free(a->flows);
	free(a->packed);
	tile_deinit(&a->tile);
}

/* The tasks that come here. */
static int expect(struct actor *a)
{
	const struct mesh_reshard *r = reshard_of(a);

	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t p = 0; p < r->tasks[i].to.hosts * r->tasks[i].to.devices; p++) {
			if (actor_receiver(a->world->verify, i, p) != a->device)
				continue;
			a->flows[i] = (struct flow){.bytes = malloc(r->tasks[i].bytes),
						    .left = r->tasks[i].bytes,
						    .place = p};
			if (!a->flows[i].bytes)
				return -ENOMEM;
			a->awaited += r->tasks[i].bytes;
		}
	return 0;
}

static int prepare(struct actor *a)
{
	const struct mesh_reshard *r = reshard_of(a);
	uint32_t n = sources(a->world->verify);
	const struct mesh_spec *spec = a->is_source ? &r->src : &r->dst;
	uint32_t device = a->is_source ? a->device : a->device - n;
	struct mesh_box box;

	mesh_tile_box(spec, &r->tensor, mesh_tile_of(spec, device), &box);
	a->flows = calloc(r->n, sizeof(*a->flows));
	a->packed = calloc(r->n, sizeof(*a->packed));
	if (!a->flows || !a->packed || tile_init(&a->tile, &r->tensor, &box))
		return -ENOMEM;
	if (a->is_source)
		tile_fill(&a->tile);
	else
		tile_spoil(&a->tile);
	return a->is_source ? 0 : expect(a);
}

/* Sends a task that is this device's to send. */
static int send_task(struct actor *a, uint32_t task)
{
	const struct verify *v = a->world->verify;
	const struct mesh_task *t = &v->reshard->tasks[task];
	uint32_t parts = mesh_parts(v->strategy, t->to, actor_pieces(v, t));
	struct wire_hdr like = {.seq = task};
	struct mesh_box box;
	int r = 0;

	a->packed[task] = malloc(t->bytes);
	if (!a->packed[task])
		return fail(a, -ENOMEM, "a task", strerror(ENOMEM));
	mesh_task_box(v->reshard, task, &box);
	tile_take(&a->tile, &box, a->packed[task]);
	for (uint32_t i = 0; r == 0 && i < parts; i++) {
		struct mesh_part part;

		part_of(a, task, i, &part);
		like.index = i;
		if (part.bytes)
			r = send_part(a, actor_receiver(v, task, part.first), &like, 0,
				      a->packed[task] + part.from, part.bytes);
	}
	return r;
}

static void compare(struct actor *a)
{
	const struct mesh_reshard *r = reshard_of(a);

	for (uint32_t i = 0; i < r->n; i++) {
		struct mesh_box box;

		if (!a->flows[i].bytes)
			continue;
		mesh_task_box(r, i, &box);
		tile_put(&a->tile, &box, a->flows[i].bytes);
	}
	a->result->elements = tile_bytes(&a->tile) / r->tensor.element_bytes;
	a->result->wrong = tile_wrong(&a->tile, &a->result->first_wrong);
}

void actor_play(const struct actor_world *w, uint32_t device, struct actor_result *ret)
{
	CLEANUP(actor_deinit)
	struct actor a = {.world = w,
			  .device = device,
			  .is_source = device < sources(w->verify),
			  .result = ret};
	const struct turns *plan = w->verify->plan;
	int r = prepare(&a);

	if (r < 0) {
		fail(&a, r, "its tile", strerror(-r));
		return;
	}
	r = join(&a);
	for (uint32_t i = 0; r == 0 && i < plan->n; i++)
		if (actor_sender(w->verify, &plan->turns[i]) == device)
			r = send_task(&a, plan->turns[i].task);
	while (r == 0 && (a.awaited || a.unsent))
		r = step(&a);
	if (r == 0 && !a.is_source)
		compare(&a);
}
