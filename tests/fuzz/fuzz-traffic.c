/* Two real nodes of four, two ranks on each node, and what their NCCLs may say of their messages,
 * in any order. The first byte chooses the world; each step is a byte that says what happens (enum
 * step) and a few that say of what. Steps that go on with a flow as NCCL would are there so that
 * the rest is reached. What is sent is checked as traffic.h promises. */
#include "fuzz.h"

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "traffic/traffic.h"
#include "wire/wire.h"

#define RANKS 8
#define FLOWS 256

enum step { FLOW, NEXT, WANT, ARRIVE, CALL, MOVE, PASSED, ADVANCE, END, STEPS };

static struct traffic *all;
static struct traffic_bodies *bodies;
static struct traffic_comm *comm;
static uint64_t now;
static bool is_dead, has_failed;

static struct known {
	struct traffic_at at;
	struct traffic_flow is;
	uint64_t next; /* to be said by the rank */
	uint64_t done; /* sent to it */
} flows[FLOWS];
static unsigned n_flows;

static uint8_t take(const uint8_t **data, size_t *size)
{
	if (!*size)
		return 0;
	(*size)--;
	return *(*data)++;
}

static void dead(int r, const struct err *err)
{
	if (r == 0)
		return;
	REQUIRE(r < 0 && *err->text);
	is_dead = true;
}

static void on_send(void *owner, void *tag, const struct traffic_message *m)
{
	struct known *f = NULL;

	(void)owner;
	(void)tag;
	REQUIRE(!is_dead);
	for (unsigned i = 0; i < n_flows; i++)
		if (!flows[i].is.is_send && flows[i].at.seq == m->at.seq &&
		    flows[i].at.rank == m->at.rank && flows[i].at.peer == m->at.peer &&
		    flows[i].at.channel == m->at.channel)
			f = &flows[i];
	REQUIRE(f && m->index == f->done && m->index < f->is.n_messages);
	REQUIRE(!m->body || (bodies && !m->is_identity && m->body->bytes == m->bytes));
	REQUIRE(bodies || m->bytes == 0);
	REQUIRE(!m->is_identity || m->bytes <= f->is.message_bytes);
	for (uint64_t i = 0; m->body && i < m->bytes; i += 7)
		now += m->body->at[i] == 255; /* it may be read */
	f->done++;
}

static void on_failed(void *owner, void *tag, const char *sentence)
{
	(void)owner;
	(void)tag;
	REQUIRE(*sentence && !has_failed);
	has_failed = is_dead = true;
}

static const struct traffic_sink sink = {on_send, on_failed};

static void open_comm(uint8_t how)
{
	static const uint32_t node[][RANKS] = {{0, 0, 1, 1, 2, 2, 3, 3}, {7, 1, 7, 1, 0, 0, 4, 4}};
	struct bitmap real;
	struct err err;

	n_flows = 0;
	is_dead = has_failed = false;
	REQUIRE(bitmap_init(&real, RANKS) == 0);
	for (unsigned r = 0; r < RANKS; r++) {
		uint32_t n = node[how & 1][r];
		bool adjacent = how & 2;

		if (n == node[how & 1][0] || n == node[how & 1][adjacent ? (how & 1 ? 1 : 2) : 4])
			bitmap_set(&real, r);
	}
	REQUIRE(traffic_comm_make(all, RANKS, node[how & 1], &real, NULL, &comm, &err) == 0);
	bitmap_deinit(&real);
	if (how & 4)
		traffic_comm_set_trees(comm, 1 + (how >> 5));
}

static struct traffic_at at_of(const uint8_t **data, size_t *size)
{
	uint8_t a = take(data, size), b = take(data, size);
	struct traffic_at at = {.seq = a & 3,
				.rank = b & 7,
				.peer = b >> 3 & 7,
				.channel = a >> 3 & 3};

	if (a & 4)
		at.seq |= WIRE_SEQ_P2P;
	if (b >> 6 != 3)
		return at;
	if (a >> 5 == 7)
		at.peer = 8 + b;
	else if (a >> 5 == 6)
		at.channel = 62 + at.channel;
	else if (a >> 5 == 5)
		at.seq += (UINT64_C(1) << 20) - 2;
	else if (a >> 5 == 4)
		at.seq += UINT64_MAX / 2 - 2;
	return at;
}

static void step_flow(const uint8_t **data, size_t *size)
{
	struct traffic_at at = at_of(data, size);
	uint8_t a = take(data, size), n = take(data, size);
	struct traffic_flow f = {.is_send = a & 1,
				 .algorithm = a >> 1 & 7,
				 .protocol = (a >> 4) % PLUGIN_N_PROTOCOLS,
				 .n_channels = n > 252 ? n : 1,
				 .n_messages = n < 250 ? n % 57 : UINT64_C(1) << (n - 240),
				 .message_bytes = 16 + n};
	struct err err;
	int r = traffic_flow(comm, &at, &f, &err);

	dead(r, &err);
	if (r == 0 && !is_dead && n_flows < FLOWS)
		flows[n_flows++] = (struct known){at, f, 0, 0};
	else if (n_flows == FLOWS)
		is_dead = true; /* more are not kept: no more is checked */
}

static void arrive(const struct traffic_at *at, uint64_t index, uint64_t bytes)
{
	struct err err;
	struct traffic_body *body;
	int r = traffic_expect(comm, at, index, bytes, &body, &err);

	dead(r, &err);
	if (r < 0)
		return;
	if (body)
		memset(body->at, (int)index, bytes);
	dead(traffic_arrived(comm, at, index, body, &err), &err);
}

static void step_next(uint8_t which, uint8_t size)
{
	struct known *f = n_flows ? &flows[which % n_flows] : NULL;
	struct err err;

	if (!f || f->next >= f->is.n_messages)
		return;
	if (f->is.is_send)
		arrive(&f->at, f->next++, bodies ? size % 4 * 16 : 0);
	else
		dead(traffic_want(comm, &f->at, f->next++, &err), &err);
}

static void step_call(const uint8_t **data, size_t *size)
{
	struct traffic_at at = at_of(data, size);
	uint8_t a = take(data, size), b = take(data, size);
	struct traffic_call call = {.kind = a % 10,
				    .dtype = b % 13,
				    .redop = b >> 5,
				    .root = at.peer,
				    .bytes = (uint64_t)b << (a >> 4),
				    .start_ns = now + b % 50,
				    .end_ns = now + a * 3};
	struct err err;

	if (a == 255)
		call.end_ns = UINT64_MAX;
	dead(traffic_call(comm, at.rank, at.seq, &call, &err), &err);
}

static void step(enum step what, uint8_t how, const uint8_t **data, size_t *size)
{
	struct traffic_at at;
	struct err err;
	uint64_t due;

	switch (what) {
	case FLOW:
		step_flow(data, size);
		break;
	case NEXT:
		for (unsigned i = take(data, size) % 16; i < 16; i++)
			step_next(how, (uint8_t)(how + i));
		break;
	case WANT:
		at = at_of(data, size);
		dead(traffic_want(comm, &at, take(data, size), &err), &err);
		break;
	case ARRIVE:
		at = at_of(data, size);
		arrive(&at, take(data, size) % 64, how % 32);
		break;
	case CALL:
		step_call(data, size);
		break;
	case MOVE:
		at = at_of(data, size);
		traffic_move(comm, at.rank, at.seq, now, now + how);
		break;
	case PASSED:
		at = at_of(data, size);
		traffic_passed(comm, at.rank, at.seq);
		if (!is_dead) /* it may be said again */
			for (unsigned i = 0; i < n_flows; i++)
				if (flows[i].at.seq == at.seq &&
				    flows[i].done == flows[i].is.n_messages)
					flows[i].at.rank = RANKS;
		break;
	case ADVANCE:
		due = traffic_advance(all, now += how);
		REQUIRE(due > now || has_failed);
		break;
	case END:
		traffic_comm_end(comm);
		REQUIRE(traffic_advance(all, now) == UINT64_MAX);
		open_comm(how);
		break;
	case STEPS:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct traffic_bodies *pool; /* kept: mapping memory takes longest */
	uint8_t how = take(&data, &size);
	char text[200];

	now = 0;
	pool = pool ? pool : traffic_bodies_new(UINT64_C(1) << 26);
	bodies = how & 16 ? NULL : pool;
	REQUIRE(traffic_new(&sink, NULL, bodies, how & 8 ? 6 << 10 : 1 << 20, &all) == 0);
	open_comm(how);
	while (size >= 2) {
		uint8_t a = take(&data, &size);

		step(a % STEPS, a / STEPS, &data, &size);
		traffic_waits(comm, text, 1 + a % sizeof(text));
		REQUIRE(!is_dead || n_flows == FLOWS || !*text);
	}
	traffic_advance(all, UINT64_MAX - 1);
	traffic_free(all);
	REQUIRE(traffic_bodies_lent(pool) == 0);
	return 0;
}
