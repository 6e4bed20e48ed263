/* Ranks of NCCL, all of them or the real ones only, play rings, chains, trees, sends and receives
 * as programs of sends and receives with real data. First a world of all ranks runs by itself, op
 * after op: the slow model, in which virtual ranks hold the element that changes nothing. Then the
 * real ranks run alone, in any order, and what they would get from elsewhere comes through traffic.
 * Every message and every result must be the same, nothing may come twice, early or never. */
#include <stdio.h>

#include "traffic/traffic.h"
#include "world.h"

struct ring_end { /* of a real rank and an op: a flow */
	uint64_t n, next, wanted, n_got;
	uint64_t n_skipped; /* empty ones that are still to come */
	uint64_t bytes;     /* none has more */
	bool is_declared;
	struct pipe got;
};

static struct play {
	struct traffic *t;
	struct traffic_bodies *bodies;
	struct traffic_comm *c;
	uint64_t now_ns;
	struct ring_end *end; /* [op][rank][peer][channel][is_send] */
	bool has_begun[OPS][RANKS], has_call[OPS][RANKS];
	uint64_t start_ns[OPS][RANKS], end_ns[OPS][RANKS];
	bool was_moved[OPS][RANKS];
	uint32_t at_op[RANKS];
	struct pipe out[RANKS]; /* on their way to nboxd */
	uint64_t n_sent, n_arrived, n_progress;
	bool has_failed;
} p;

static struct ring_end *end_of(uint64_t op, uint32_t rank, uint32_t peer, uint32_t c, bool is_send)
{
	return &p.end[((((op * RANKS) + rank) * RANKS + peer) * CHANNELS + c) * 2 + is_send];
}

static struct traffic_at at_of(uint64_t op, uint32_t rank, uint32_t peer, uint32_t c)
{
	return (struct traffic_at){w.op[op].seq[rank], rank, peer, (uint16_t)c};
}

static void ok(int r, const struct err *err)
{
	if (r != 0)
		print_error("%s\n", err->text);
	assert_int_equal(r, 0);
}

static uint64_t op_of(const struct traffic_at *at)
{
	for (uint32_t i = 0; i < w.n_ops; i++)
		if (w.op[i].seq[at->rank] == at->seq && w.op[i].takes_part[at->rank])
			return i;
	fail_msg("no op %llx at rank %u", (unsigned long long)at->seq, at->rank);
	return 0;
}

static void on_send(void *owner, void *tag, const struct traffic_message *m)
{
	uint64_t i = op_of(&m->at);
	const struct op *op = &w.op[i];
	struct ring_end *end = end_of(i, m->at.rank, m->at.peer, m->at.channel, false);
	uint64_t start_ns = p.start_ns[i][m->at.rank], end_ns = p.end_ns[i][m->at.rank];
	struct message *got;

	assert_ptr_equal(owner, &p);
	assert_ptr_equal(tag, &w);
	assert_true(end->is_declared && m->index == end->n_got && m->index < end->wanted);
	assert_true(p.has_call[i][m->at.rank] || (is_direct(op) && !m->is_identity));
	if (!p.has_call[i][m->at.rank])
		; /* when the sender's op says */
	else if (!p.was_moved[i][m->at.rank])
		assert_true((unsigned __int128)(p.now_ns - start_ns) * end->n >=
			    (unsigned __int128)(end_ns - start_ns) * (m->index + 1));
	else if (m->index == end->n - 1)
		assert_true(p.now_ns >= end_ns);
	assert_true(m->bytes <= end->bytes);
	end->n_got++;
	got = new_message(m->body ? m->body->at : NULL, m->body ? m->bytes : 0);
	got->bytes = m->bytes;
	got->is_identity = m->is_identity;
	assert_true(!m->body || (m->body->bytes == m->bytes && !m->is_identity));
	assert_true(w.has_bodies || m->bytes == 0);
	put(&end->got, got);
	(void)op;
	p.n_sent++;
	p.n_progress++;
}

static void on_failed(void *owner, void *tag, const char *sentence)
{
	(void)owner;
	(void)tag;
	fail_msg("%s", sentence);
}

static void declare(uint64_t i, uint32_t rank, uint32_t peer, uint32_t c, bool is_send)
{
	struct ring_end *end = end_of(i, rank, peer, c, is_send);
	struct traffic_at at = at_of(i, rank, peer, c);
	struct traffic_flow f = {.is_send = is_send,
				 .algorithm = w.op[i].algorithm,
				 .protocol = w.op[i].protocol,
				 .n_channels = w.op[i].n_channels,
				 .n_messages = end->n,
				 .message_bytes = end->bytes};
	struct err err = {""};

	if (end->is_declared)
		return;
	end->is_declared = true;
	ok(traffic_flow(p.c, &at, &f, &err), &err);
}

/* A proxy does one op after the other on a connection; sends and receives have their own. */
static bool is_its_turn(uint64_t i, uint32_t rank, uint32_t peer, uint32_t c)
{
	for (uint64_t k = 0; k < i; k++) {
		const struct ring_end *end = end_of(k, rank, peer, c, false);

		if (is_direct(&w.op[k]) == is_direct(&w.op[i]) && end->n_got < end->n)
			return false;
	}
	return true;
}

static void post(uint64_t i, uint32_t rank, uint32_t peer, uint32_t c)
{
	struct ring_end *end = end_of(i, rank, peer, c, false);
	struct traffic_at at = at_of(i, rank, peer, c);
	struct err err = {""};

	if (end->wanted == end->n || end->wanted >= end->next + 8 || !is_its_turn(i, rank, peer, c))
		return;
	declare(i, rank, peer, c, false);
	ok(traffic_want(p.c, &at, end->wanted++, &err), &err);
	p.n_progress++;
}

/* What came is what the model says; identities stand for what it says. */
static void check_got(uint64_t i, uint32_t rank, uint32_t peer, uint32_t c, const struct instr *in,
		      const struct message *got, unsigned char *data)
{
	const struct op *op = &w.op[i];
	struct message *want = w.sent[peer][rank][c];
	uint64_t bytes = in->n * element(op);

	w.sent[peer][rank][c] = want->next;
	assert_int_equal(want->op, i);
	assert_int_equal(want->bytes, bytes);
	if (got->is_identity || !w.has_bodies)
		set_identity(op, data, in->n);
	else
		from_wire(op, got->data, data, bytes);
	if (!w.has_bodies) {
		memcpy(data, want->data, bytes);
		free_message(want);
		return;
	}
	if (is_direct(op) && got->is_identity)
		assert_false(is_real(peer));
	if (got->bytes < wire_bytes(op, in->n) ||
	    (!got->is_identity && got->bytes != wire_bytes(op, in->n)))
		fail_msg(
			"op %llu (%s, algorithm %u, protocol %u), %u<-%u channel %u: %llu bytes%s, not %llu",
			(unsigned long long)i, coll_kind_name(op->kind), op->algorithm,
			op->protocol, rank, peer, c, (unsigned long long)got->bytes,
			got->is_identity ? " of an identity" : "",
			(unsigned long long)wire_bytes(op, in->n));
	if (bytes && memcmp(data, want->data, bytes) != 0)
		fail_msg("op %llu (%s, algorithm %u, protocol %u), %u<-%u channel %u: other data%s",
			 (unsigned long long)i, coll_kind_name(op->kind), op->algorithm,
			 op->protocol, rank, peer, c, got->is_identity ? " than an identity" : "");
	free_message(want);
}

/* Kernels of LL do not wait for what is empty. */
static bool is_skipped(const struct op *op, uint64_t n)
{
	return n == 0 && op->algorithm != WIRE_NCCL_DIRECT && op->protocol != PLUGIN_SIMPLE;
}

static void drop_skipped(struct ring_end *end)
{
	while (end->n_skipped && end->got.first) {
		struct message *m = get(&end->got);

		assert_true(m->is_identity || m->bytes == 0);
		free_message(m);
		end->n_skipped--;
		end->next++;
	}
}

static bool play_step(uint64_t i, uint32_t r, uint32_t c)
{
	struct op *op = &w.op[i];
	struct program *program = &op->program[r][c];
	const struct instr *in = program->n ? &program->of[program->at] : NULL;
	bool net;
	size_t bytes;

	if (program->at == program->n)
		return false;
	net = is_net(r, in->peer);
	bytes = in->n * element(op);
	if (in->is_send) {
		unsigned char *from = op->buffer[r] + in->at * element(op);
		uint64_t n = net ? wire_bytes(op, in->n) : bytes;
		struct message *m;

		prepare(op, in, op->buffer[r]);
		m = new_message(net ? NULL : from, n);
		m->op = i;
		if (!net) {
			put(&w.pipe[r][in->peer][c], m);
		} else {
			to_wire(op, from, bytes, m->data, n);
			m->index = (uint64_t)in->peer << 8 | c;
			put(&p.out[r], m);
		}
	} else if (net) {
		struct ring_end *end = end_of(i, r, in->peer, c, false);
		struct message *m = NULL, *empty;
		unsigned char data[2048 * 8];

		drop_skipped(end);
		if (is_skipped(op, in->n)) {
			empty = w.sent[in->peer][r][c];
			assert_int_equal(empty->bytes, 0);
			w.sent[in->peer][r][c] = empty->next;
			free_message(empty);
			end->n_skipped++;
			program->at++;
			p.n_progress++;
			return true;
		}
		if (end->n_skipped == 0)
			m = get(&end->got);
		if (!m)
			return false;
		assert_true(bytes <= sizeof(data));
		end->next++;
		check_got(i, r, in->peer, c, in, m, data);
		receive(op, in, op->buffer[r], data);
		free_message(m);
	} else {
		struct message *m = get(&w.pipe[in->peer][r][c]);

		if (!m)
			return false;
		receive(op, in, op->buffer[r], m->data);
		free_message(m);
	}
	program->at++;
	p.n_progress++;
	return true;
}

static void count_ends(struct op *op, uint64_t i)
{
	for (uint32_t r = 0; r < w.n; r++)
		for (uint32_t c = 0; is_real(r) && c < w.n_channels; c++)
			for (uint32_t k = 0; k < op->program[r][c].n; k++) {
				const struct instr *in = &op->program[r][c].of[k];
				struct ring_end *end = end_of(i, r, in->peer, c, in->is_send);
				uint64_t bytes = wire_bytes(op, in->n);

				if (!is_net(r, in->peer))
					continue;
				end->n++;
				end->bytes = bytes > end->bytes ? bytes : end->bytes;
			}
}

static void begin(uint64_t i, uint32_t r)
{
	struct op *op = &w.op[i];

	p.has_begun[i][r] = true;
	op->buffer[r] = malloc(op->elements * element(op));
	assert_non_null(op->buffer[r]);
	memcpy(op->buffer[r], op->input[r], op->elements * element(op));
	p.n_progress++;
}

/* Proxies go on when the kernel is over. */
static void run_proxies(uint32_t r)
{
	for (uint32_t i = 0; i < p.at_op[r] && i < w.n_ops; i++)
		for (uint32_t peer = 0; peer < w.n; peer++)
			for (uint32_t c = 0; c < w.n_channels; c++) {
				drop_skipped(end_of(i, r, peer, c, false));
				post(i, r, peer, c);
			}
}

static void run_rank(uint32_t r)
{
	uint64_t i = p.at_op[r];
	struct op *op = &w.op[i];
	bool is_over = true;

	if (pick(4) == 0)
		run_proxies(r);
	if (i == w.n_ops)
		return;
	if (!op->takes_part[r]) {
		p.at_op[r]++;
		p.n_progress++;
		return;
	}
	if (!p.has_begun[i][r]) {
		begin(i, r);
		return;
	}
	for (uint32_t c = 0; c < w.n_channels; c++) {
		for (uint32_t k = pick(6); k > 0 && play_step(i, r, c); k--)
			;
		for (uint32_t peer = 0; peer < w.n; peer++)
			if (pick(3) && end_of(i, r, peer, c, false)->n)
				post(i, r, peer, c);
		is_over = is_over && op->program[r][c].at == op->program[r][c].n;
	}
	if (!is_over || !p.has_call[i][r] || p.now_ns < p.end_ns[i][r])
		return;
	traffic_passed(p.c, r, op->seq[r]);
	p.at_op[r]++;
	p.n_progress++;
}

static void deliver(uint32_t r)
{
	struct message *m = get(&p.out[r]);
	struct traffic_body *body = NULL;
	struct err err = {""};
	struct traffic_at at;
	struct ring_end *end;
	uint32_t peer, c;

	if (!m)
		return;
	peer = (uint32_t)(m->index >> 8);
	c = (uint32_t)(m->index & 255);
	at = at_of(m->op, r, peer, c);
	end = end_of(m->op, r, peer, c, true);
	declare(m->op, r, peer, c, true);
	ok(traffic_expect(p.c, &at, end->next, w.has_bodies ? m->bytes : 0, &body, &err), &err);
	if (body)
		memcpy(body->at, m->data, m->bytes);
	ok(traffic_arrived(p.c, &at, end->next++, body, &err), &err);
	free_message(m);
	p.n_arrived++;
	p.n_progress++;
}

/* An op's end is known when all real ranks that take part have begun. */
static void call(void)
{
	uint32_t i = pick(w.n_ops), r = pick(w.n);
	struct op *op = &w.op[i];
	struct err err = {""};
	struct traffic_call call = {.kind = op->kind,
				    .dtype = op->dtype,
				    .redop = op->redop,
				    .root = op->root,
				    .bytes = op->count * element(op)};

	if (is_direct(op)) /* the largest of its sends, or not told */
		call.bytes = i % 2 ? op->cap * element(op) : 0;
	if (!is_real(r) || p.has_call[i][r] || !p.has_begun[i][r])
		return;
	for (uint32_t o = 0; o < w.n; o++)
		if (is_real(o) && !p.has_begun[i][o] && op->kind != COLL_SENDRECV)
			return;
	p.has_call[i][r] = true;
	call.start_ns = p.start_ns[i][r] = p.now_ns + pick(100);
	call.end_ns = p.end_ns[i][r] = call.start_ns + (pick(5) ? pick(5000) : 0);
	ok(traffic_call(p.c, r, op->seq[r], &call, &err), &err);
	p.n_progress++;
}

static void move(void)
{
	uint32_t i = pick(w.n_ops), r = pick(w.n);

	if (!is_real(r) || !p.has_call[i][r] || p.now_ns < p.start_ns[i][r] ||
	    p.end_ns[i][r] <= p.now_ns)
		return;
	p.was_moved[i][r] = true;
	p.end_ns[i][r] = p.now_ns + pick(6000);
	traffic_move(p.c, r, w.op[i].seq[r], p.now_ns, p.end_ns[i][r]);
}

static bool is_over(void)
{
	uint64_t n_left = 0;

	for (uint32_t r = 0; r < w.n; r++)
		if (is_real(r) && (p.at_op[r] < w.n_ops || p.out[r].first))
			return false;
	for (size_t i = 0; i < (size_t)OPS * RANKS * RANKS * CHANNELS; i++)
		n_left += p.end[2 * i].n - p.end[2 * i].next;
	return n_left == 0;
}

static void run_play(void)
{
	uint64_t stuck = 0, before = 0;
	char text[300];

	for (uint32_t i = 0; i < w.n_ops; i++)
		count_ends(&w.op[i], i);
	while (!is_over()) {
		uint32_t what = pick(16), r = pick(w.n);

		if (what < 6 && is_real(r))
			run_rank(r);
		else if (what < 9)
			deliver(r);
		else if (what < 12)
			call();
		else if (what == 12 && pick(4) == 0)
			move();
		else if (what > 12) {
			p.now_ns += pick(300);
			traffic_advance(p.t, p.now_ns);
		}
		stuck = p.n_progress == before ? stuck + 1 : 0;
		before = p.n_progress;
		if (stuck > 200000)
			fail_msg("stuck: %s", traffic_waits(p.c, text, sizeof(text)));
	}
}

static void check_end(void)
{
	struct traffic_counts counts;
	char text[300];
	uint64_t n_ops = 0, n_out = 0, n_in = 0;

	for (uint32_t i = 0; i < w.n_ops; i++)
		for (uint32_t r = 0; r < w.n; r++) {
			const struct op *op = &w.op[i];

			if (!is_real(r) || !op->takes_part[r])
				continue;
			n_ops++;
			assert_memory_equal(op->buffer[r], op->model[r],
					    op->elements * element(op));
			for (uint32_t o = 0; o < w.n; o++)
				for (uint32_t c = 0; c < w.n_channels; c++) {
					struct ring_end *in = end_of(i, r, o, c, false);

					assert_int_equal(in->n, in->n_got);
					n_in += in->n;
					n_out += end_of(i, r, o, c, true)->n;
				}
		}
	traffic_count(p.t, &counts);
	if (getenv("SEED"))
		print_message(
			"# %u ranks, %u nodes: %llu in, %llu out, %llu identities, %llu sums, %llu late\n",
			w.n, w.n_nodes, (unsigned long long)n_out, (unsigned long long)n_in,
			(unsigned long long)counts.n_identity, (unsigned long long)counts.n_summed,
			(unsigned long long)counts.n_late);
	assert_int_equal(counts.n_sent, n_in);
	assert_int_equal(counts.n_arrived, n_out);
	assert_int_equal(counts.n_ops, n_ops);
	assert_int_equal(counts.n_flows, 0);
	assert_int_equal(counts.n_waiting, 0);
	assert_string_equal(traffic_waits(p.c, text, sizeof(text)), "");
	assert_true(traffic_advance(p.t, UINT64_MAX - 1) == UINT64_MAX);
}

static void number_ops(void)
{
	uint64_t n_collectives = 0, n_own[RANKS] = {0};

	for (uint32_t i = 0; i < w.n_ops; i++) {
		bool is_own = w.op[i].kind == COLL_SENDRECV;

		for (uint32_t r = 0; r < w.n; r++) {
			w.op[i].seq[r] = is_own ? WIRE_SEQ_P2P | n_own[r] : n_collectives;
			n_own[r] += is_own && w.op[i].takes_part[r];
		}
		n_collectives += !is_own;
	}
}

static void open_traffic(void)
{
	static const struct traffic_sink sink = {on_send, on_failed};
	struct bitmap real;
	struct err err = {""};

	memset(&p, 0, sizeof(p));
	p.end = calloc((size_t)OPS * RANKS * RANKS * CHANNELS * 2, sizeof(*p.end));
	p.bodies = w.has_bodies ? traffic_bodies_new(UINT64_C(1) << 30) : NULL;
	p.now_ns = 1000000;
	assert_int_equal(bitmap_init(&real, w.n), 0);
	for (uint32_t r = 0; r < w.n; r++)
		if (is_real(r))
			bitmap_set(&real, r);
	assert_int_equal(traffic_new(&sink, &p, p.bodies, UINT64_MAX, &p.t), 0);
	ok(traffic_comm_make(p.t, w.n, w.named, &real, &w, &p.c, &err), &err);
	traffic_comm_set_trees(p.c, w.n_trees);
	bitmap_deinit(&real);
}

static void close_all(void)
{
	traffic_comm_end(p.c);
	traffic_free(p.t);
	traffic_bodies_free(p.bodies);
	free(p.end);
	for (uint32_t r = 0; r < w.n; r++)
		for (uint32_t o = 0; o < w.n; o++)
			for (uint32_t c = 0; c < CHANNELS; c++)
				assert_null(w.sent[r][o][c]);
	for (uint32_t i = 0; i < w.n_ops; i++)
		for (uint32_t r = 0; r < w.n; r++) {
			free(w.op[i].input[r]);
			free(w.op[i].model[r]);
			free(w.op[i].buffer[r]);
			for (uint32_t c = 0; c < CHANNELS; c++)
				free(w.op[i].program[r][c].of);
		}
}

static void run_world(uint64_t seed)
{
	rng_seed(&rng, seed, 0);
	memset(&w, 0, sizeof(w));
	do
		make_nodes();
	while (w.n < 2 || w.n_nodes < 2);
	make_channels();
	w.has_bodies = pick(5) > 0;
	w.n_ops = 1 + pick(OPS);
	for (uint32_t i = 0; i < w.n_ops; i++)
		make_op(&w.op[i], i);
	number_ops();
	run_model();
	open_traffic();
	run_play();
	check_end();
	close_all();
}

static void real_ranks_get_what_a_whole_world_would_give_them(void **state)
{
	uint64_t first = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 0) : 1;
	uint64_t n = getenv("SEEDS") ? strtoull(getenv("SEEDS"), NULL, 0) : 600;

	(void)state;
	for (uint64_t seed = first; seed < first + n; seed++) {
		if (getenv("SEED"))
			print_message("# seed %llu\n", (unsigned long long)seed);
		run_world(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_ranks_get_what_a_whole_world_would_give_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
