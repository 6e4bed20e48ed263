/* Two real ranks of six, and what they may send to NCCL's bootstrap, in any order. Each step of the
 * input begins with a byte that says what happens (enum step) and one that says at which connection
 * or port; the first byte of all chooses the form of NCCL. Steps that send something well formed
 * are there so that the rest is reached. The net below checks what bootstrap.h promises. */
#include "fuzz.h"

#include <errno.h>

#include "bootstrap/bootstrap.h"

#define CONNS 64 /* more are not opened */

enum step {
	ACCEPT,
	BYTES,
	HELLO,
	CHECK_IN,
	SIZE,
	ZEROS,
	MESSAGE,
	ENDED,
	OUT,
	CLOSE,
	SHRINK,
	END,
	STEPS
};

static struct nccl_records table = {
	.name = "fuzz",
	.next_bytes = 32,
	.connect_bytes = 136,
	.use_gdr = {128, 4},
	.id_magic = {0, 8},
	.id_address = {8, 28},
	.check_in = {.bytes = 72,
		     .rank = {0, 4},
		     .n_ranks = {4, 4},
		     .root = {8, 4},
		     .n_roots = {12, 4},
		     .root_address = {16, 28},
		     .ring_address = {44, 28}},
	.peer = {.bytes = 64,
		 .rank = {0, 4},
		 .host_hash = {8, 8},
		 .pid_hash = {16, 8},
		 .comm = {24, 8},
		 .cluster_uuid = {32, 16}},
	.graph = {.bytes = 48,
		  .n_graphs = 2,
		  .graph_bytes = 4,
		  .n_channels = {0, 4},
		  .arrays_at = 8,
		  .n_channels_max = 1,
		  .nvls_head_count = {40, 4}},
	.later = {{2, NULL}, {5, "refused"}},
	.barrier_tags = {0xbeef, 0xcafe},
};

static struct bootstrap *all;
static struct bootstrap_comm *comms[64];
static unsigned n_comms;
static struct bootstrap_conn *conns[CONNS];
static bool is_hung_up[CONNS], is_now[CONNS], is_blocked[CONNS];
static unsigned n_lost; /* that did not find a place above */

static unsigned number(const struct bootstrap_conn *c)
{
	return (unsigned)(uintptr_t)bootstrap_conn_sink(c);
}

static int place(struct bootstrap_conn *c)
{
	for (unsigned i = 0; i < CONNS; i++) {
		if (conns[i])
			continue;
		conns[i] = c;
		is_hung_up[i] = is_now[i] = is_blocked[i] = false;
		bootstrap_conn_set_sink(c, (void *)(uintptr_t)i);
		return 0;
	}
	n_lost++;
	return -1;
}

static int on_port(void *ctx, unsigned port, uint8_t ret[NCCL_ADDRESS_BYTES], struct err *err)
{
	(void)ctx;
	(void)err;
	memset(ret, (int)port + 1, NCCL_ADDRESS_BYTES);
	return 0;
}

static int on_port_once(void *ctx, struct bootstrap_conn *c, uint8_t ret[NCCL_ADDRESS_BYTES],
			struct err *err)
{
	(void)ctx;
	memset(ret, 0xaa, NCCL_ADDRESS_BYTES);
	return place(c) < 0 ? err_set(err, EMFILE, "too many") : 0;
}

static int on_dial(void *ctx, struct bootstrap_conn *c, const uint8_t address[NCCL_ADDRESS_BYTES],
		   struct err *err)
{
	(void)ctx;
	(void)address;
	return place(c) < 0 ? err_set(err, EMFILE, "too many") : 0;
}

static void on_wake(void *ctx, struct bootstrap_conn *c)
{
	(void)ctx;
	REQUIRE(conns[number(c)] == c && !is_hung_up[number(c)]);
	is_blocked[number(c)] = false;
}

static void on_hang_up(void *ctx, struct bootstrap_conn *c, bool now)
{
	(void)ctx;
	REQUIRE(conns[number(c)] == c && !is_hung_up[number(c)]);
	is_hung_up[number(c)] = true;
	is_now[number(c)] = now;
}

static void on_failed(void *ctx, struct bootstrap_comm *comm, const char *sentence)
{
	char text[64];

	(void)ctx;
	REQUIRE(*sentence && !*bootstrap_comm_waits(comm, text, sizeof(text)));
}

static int on_votes(void *ctx, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		    struct err *err)
{
	(void)ctx;
	(void)err;
	for (uint32_t r = 1; r < bootstrap_comm_size(parent); r++) {
		color[r] = color[0];
		key[r] ^= (int32_t)r * 5;
	}
	return 0;
}

static void on_child(void *ctx, struct bootstrap_comm *parent, struct bootstrap_comm *child)
{
	(void)ctx;
	REQUIRE(bootstrap_comm_size(child) <= bootstrap_comm_size(parent));
	if (n_comms < 64)
		comms[n_comms++] = child;
}

static int on_magic(void *ctx, uint64_t *ret)
{
	(void)ctx;
	*ret = 1;
	return 0;
}

static const struct bootstrap_sink sink = {.port = on_port,
					   .port_once = on_port_once,
					   .dial = on_dial,
					   .wake = on_wake,
					   .hang_up = on_hang_up,
					   .failed = on_failed,
					   .votes = on_votes,
					   .child = on_child};

static void feed(struct bootstrap_conn *c, const void *bytes, size_t n)
{
	unsigned i;
	size_t room;

	for (size_t at = 0; c && at < n; at += room) {
		i = number(c);
		room = is_hung_up[i] ? 0 : bootstrap_conn_room(c);
		if (room == 0)
			return;
		room = room < n - at ? room : n - at;
		bootstrap_conn_in(c, (const uint8_t *)bytes + at, room);
	}
}

static void hello(struct bootstrap_conn *c, uint64_t magic)
{
	int32_t type = 1;

	feed(c, &magic, sizeof(magic));
	feed(c, &type, sizeof(type));
}

static struct bootstrap_conn *accept_at(unsigned port)
{
	struct bootstrap_conn *c = bootstrap_conn_accepted(all, port);

	REQUIRE(c);
	if (place(c) == 0)
		return c;
	bootstrap_conn_closed(c);
	return NULL;
}

/* A rank checks in. */
static void check_in(uint8_t rank)
{
	struct bootstrap_conn *c = accept_at(PORT_ROOT);
	int32_t record[19] = {72, rank, 6, 0, 1};

	hello(c, 1);
	feed(c, record, sizeof(record));
}

static void message(uint8_t how, uint8_t size)
{
	static const int32_t tags[] = {1 << 8, (3 << 8) + 1, (5 << 8) + 128, 0xbeef, 0xcafe,
				       7,      -2,           1 << 8};
	static const uint16_t sizes[] = {0, 4, 32, 136, 272, 1360, 28, 5};
	static const uint8_t bytes[1360] = {[300] = 1};
	struct bootstrap_conn *c = accept_at(PORT_NEAR + (how & 3));
	int32_t heads[] = {4, how & 4 ? 3 : 0, 4, tags[how >> 5]}, head[] = {8, heads[1], heads[3]},
		n = sizes[size & 7];

	hello(c, 1);
	if (table.has_two_heads)
		feed(c, heads, sizeof(heads));
	else
		feed(c, head, sizeof(head));
	feed(c, &n, sizeof(n));
	feed(c, bytes, (size_t)n);
}

static void out(struct bootstrap_conn *c, size_t size)
{
	uint8_t buf[256];

	if (c && !(is_hung_up[number(c)] && is_now[number(c)]))
		is_blocked[number(c)] = bootstrap_conn_out(c, buf, size) == 0;
}

static void close_hung_up(struct bootstrap_conn *c)
{
	if (!c || !is_hung_up[number(c)])
		return;
	conns[number(c)] = NULL;
	bootstrap_conn_closed(c);
}

static void shrink(uint8_t which)
{
	uint32_t excluded[] = {which & 7, (which >> 3) & 7};
	struct err err;

	if (n_comms && comms[which % n_comms])
		bootstrap_comm_shrink(comms[which % n_comms], excluded, 1 + (which >> 7), &err);
}

static void step(enum step what, uint8_t at, const uint8_t **data, size_t *size)
{
	static const uint8_t zeros[256];
	struct bootstrap_conn *c = conns[at % CONNS];
	uint8_t n = *size ? **data : 0;
	int32_t words[] = {n, 28, 8, 64, 48, 2, 4, 32};

	*data += *size ? 1 : 0;
	*size -= *size ? 1 : 0;
	switch (what) {
	case ACCEPT:
		accept_at(at % 6);
		break;
	case BYTES:
		n = n < *size ? n : (uint8_t)*size;
		feed(c, *data, n);
		*data += n;
		*size -= n;
		break;
	case HELLO:
		hello(c, n);
		break;
	case CHECK_IN:
		check_in(at);
		break;
	case SIZE:
		feed(c, &words[n % 8], sizeof(words[0]));
		break;
	case ZEROS:
		feed(c, zeros, n);
		break;
	case MESSAGE:
		message(at, n);
		break;
	case ENDED:
		if (c && !is_hung_up[number(c)])
			bootstrap_conn_ended(c, n & 1 ? ECONNRESET : 0);
		break;
	case OUT:
		for (unsigned i = 0; i < CONNS; i++)
			out(conns[i], 1 + (size_t)n);
		break;
	case CLOSE:
		for (unsigned i = 0; i < CONNS; i++)
			close_hung_up(conns[i]);
		break;
	case SHRINK:
		shrink(n);
		break;
	case END:
		if (n_comms && comms[n % n_comms]) {
			bootstrap_comm_end(comms[n % n_comms]);
			comms[n % n_comms] = NULL;
		}
		break;
	case STEPS:
		break;
	}
}

static void form(uint8_t how)
{
	table.is_both_ways = how & 1;
	table.has_two_heads = how & 2;
	table.n_contacts = how & 4 ? 3 : 1;
	table.contacts[0] = (struct record_contact){28, {0, 28}};
	table.contacts[1] = (struct record_contact){28, {0, 0}};
	table.contacts[2] = (struct record_contact){8, {0, 0}};
	table.split = (struct record_split){.n_gathers = how & 8 ? 2 : 1,
					    .bytes = how & 8 ? 4 : 8,
					    .color = {0, 4},
					    .key = {how & 8 ? 0 : 4, 4},
					    .tag = -2};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t node[] = {0, 1, 2, 3, 4, 5}, template[] = {0, 0, 0, 3, 3, 3},
			      alone[] = {0, 0, 0, 0, 0, 0};
	uint8_t id[NCCL_ID_BYTES], what, at;
	char text[200];
	struct err err;

	if (size < 1)
		return 0;
	form(data[0]);
	memset(conns, 0, sizeof(conns));
	n_comms = 0;
	all = bootstrap_new(&sink, NULL, on_magic);
	REQUIRE(all && bootstrap_comm_make(all, &table, 6, node, data[0] & 16 ? alone : template, 1,
					   id, &comms[n_comms++], &err) == 0);
	for (data++, size--; size >= 2;) {
		what = data[0];
		at = data[1];
		data += 2;
		size -= 2;
		step(what % STEPS, at, &data, &size);
		if (comms[0])
			bootstrap_comm_waits(comms[0], text, 1 + at % sizeof(text));
	}
	for (unsigned i = 0; i < CONNS; i++)
		out(conns[i], 200);
	for (unsigned i = 0; i < n_comms; i++)
		bootstrap_comm_end(comms[i]);
	for (unsigned i = 0; i < CONNS; i++)
		close_hung_up(conns[i]);
	bootstrap_free(all);
	return 0;
}
