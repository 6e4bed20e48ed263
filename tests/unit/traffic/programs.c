/* See world.h: what NCCL's ranks do in rings, chains, trees, sends and receives. */
#include "world.h"

#include "schedule/dtree.h"

static void say(struct program *p, bool is_send, uint32_t peer, uint64_t at, uint64_t n,
		bool reduces)
{
	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->of = realloc(p->of, p->room * sizeof(p->of[0]));
		assert_non_null(p->of);
	}
	p->of[p->n++] = (struct instr){is_send, peer, reduces, at, n, false};
}

/* The sum is complete where instructions from @first on begin: there NCCL divides. */
static void divide(const struct op *op, struct program *p, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; op->redop == COLL_AVG && i < end; i++)
		p->of[i].divides = true;
}

/* A chunk of @n elements as the messages of one step: two slices with Simple. */
static void say_slices(const struct op *op, struct program *p, bool is_send, uint32_t peer,
		       uint64_t at, uint64_t n, uint64_t chunk, bool reduces)
{
	uint64_t half = (chunk + 1) / 2 < 8 ? 8 : (chunk + 1) / 2;

	if (op->protocol != PLUGIN_SIMPLE) {
		say(p, is_send, peer, at, n, reduces);
		return;
	}
	half = half < n ? half : n;
	say(p, is_send, peer, at, half, reduces);
	say(p, is_send, peer, at + half, n - half, reduces);
}

static void ring_loop(struct op *op, uint32_t c, uint32_t rank, uint64_t at, uint64_t rest,
		      uint64_t chunk)
{
	struct program *p = &op->program[rank][c];
	uint32_t n = w.n, place = w.place[c][rank];
	uint32_t next = w.ring[c][(place + 1) % n], prev = w.ring[c][(place + n - 1) % n];
	uint32_t steps = op->kind == COLL_ALLREDUCE ? 2 * (n - 1) : n - 1;

	for (uint32_t s = 0; s < steps; s++) {
		uint32_t back = op->kind == COLL_REDUCESCATTER ? 1 : 0;
		uint32_t which[2] = {(place + 2 * n - s - back) % n,
				     (place + 2 * n - 1 - s - back) % n};
		bool reduces =
			op->kind == COLL_REDUCESCATTER || (op->kind == COLL_ALLREDUCE && s < n - 1);

		for (uint32_t i = 0; i < 2; i++) {
			uint32_t before = p->n;
			uint64_t from = at, m = chunk;

			if (op->kind == COLL_ALLREDUCE) {
				uint64_t skip = which[i] * chunk < rest ? which[i] * chunk : rest;

				from += skip;
				m = rest - skip < chunk ? rest - skip : chunk;
			} else { /* blocks by rank */
				from += w.ring[c][which[i]] * op->count;
			}
			say_slices(op, p, i == 0, i == 0 ? next : prev, from, m, chunk, reduces);
			if (i == 0 && s == n - 1)
				divide(op, p, before, p->n);
		}
	}
}

static void ring(struct op *op, uint32_t c, uint32_t rank)
{
	uint64_t at = op->first[c], end = op->first[c + 1];

	while (at < end) {
		uint64_t chunk = end - at, unit = 16 / element(op);

		if (op->kind == COLL_ALLREDUCE)
			chunk = up_to((chunk + w.n - 1) / w.n, unit);
		chunk = chunk < op->cap ? chunk : op->cap;
		ring_loop(op, c, rank, at, end - at, chunk);
		at += op->kind == COLL_ALLREDUCE ? chunk * w.n : chunk;
	}
}

static void chain(struct op *op, uint32_t c, uint32_t rank)
{
	struct program *p = &op->program[rank][c];
	uint32_t next = w.ring[c][(w.place[c][rank] + 1) % w.n];
	uint32_t prev = w.ring[c][(w.place[c][rank] + w.n - 1) % w.n];
	bool reduces = op->kind == COLL_REDUCE;

	for (uint64_t at = op->first[c]; at < op->first[c + 1]; at += op->cap) {
		uint64_t n = op->first[c + 1] - at < op->cap ? op->first[c + 1] - at : op->cap;

		if (reduces ? prev != op->root : rank != op->root)
			say(p, false, prev, at, n, reduces);
		if (reduces ? rank != op->root : next != op->root)
			say(p, true, next, at, n, reduces);
	}
}

static void tree_chunk(struct op *op, uint32_t c, uint32_t rank, uint64_t at, uint64_t n,
		       bool is_up)
{
	struct program *p = &op->program[rank][c];
	uint32_t node = w.node[rank], hub = w.up[c][node], before = p->n;
	int32_t parent, child[2];

	sched_dtree(w.n_nodes, node, (int)(c / w.n_trees % 2), &parent, child);
	for (int k = 0; is_up && k < 2; k++)
		if (child[k] >= 0 && w.down[c][node][k] == rank)
			say(p, false, w.up[c][child[k]], at, n, true);
	for (uint32_t o = 0; o < w.n; o++) /* up: to the hub; down: from it */
		if (w.node[o] == node && o != rank && (o == hub || rank == hub))
			say(p, is_up == (o == hub), o, at, n, is_up);
	/* the hub has said it in the wrong order: its parent comes between */
	if (rank == hub && parent >= 0) {
		int32_t up, children[2];
		uint32_t k;

		sched_dtree(w.n_nodes, (uint32_t)parent, (int)(c / w.n_trees % 2), &up, children);
		k = children[0] == (int32_t)node ? 0 : 1;
		say(p, is_up, w.down[c][parent][k], at, n, false);
		for (uint32_t i = p->n - 1; !is_up && i > 0; i--) { /* first from above */
			struct instr t = p->of[i];

			if (!p->of[i - 1].is_send || w.node[p->of[i - 1].peer] != node ||
			    p->of[i - 1].at != at)
				break;
			p->of[i] = p->of[i - 1];
			p->of[i - 1] = t;
		}
	}
	for (int k = 0; !is_up && k < 2; k++)
		if (child[k] >= 0 && w.down[c][node][k] == rank)
			say(p, true, w.up[c][child[k]], at, n, false);
	if (!is_up && rank == hub && parent < 0)
		divide(op, p, before, before + 1);
}

static void tree(struct op *op, uint32_t c, uint32_t rank, uint64_t lag)
{
	uint64_t n = op->first[c + 1] - op->first[c], chunks = (n + op->cap - 1) / op->cap;

	for (uint64_t i = 0; i < chunks + lag; i++)
		for (int is_up = 1; is_up >= 0; is_up--) {
			uint64_t k = is_up ? i : i - lag, at = op->first[c] + k * op->cap;

			if (k < chunks)
				tree_chunk(op, c, rank, at,
					   op->first[c + 1] - at < op->cap ? op->first[c + 1] - at
									   : op->cap,
					   is_up);
		}
}

/* Any sends, and receives to match; the call's elements are the places in the buffer. */
static void direct(struct op *op)
{
	uint64_t at = 0;

	for (uint32_t i = pick(40); i > 0; i--) {
		uint32_t src = pick(w.n), dst = pick(w.n), c = pick(w.n_channels);
		uint64_t n = pick(4) ? 1 + pick((uint32_t)op->cap) : op->cap;

		if (src == dst || at + 3 * n > op->elements)
			continue;
		for (uint32_t k = 1 + pick(3); k > 0; k--, at += n) {
			say(&op->program[src][c], true, dst, at, n, false);
			say(&op->program[dst][c], false, src, at, n, false);
		}
		op->takes_part[src] = op->takes_part[dst] = true;
	}
	/* sends come first: nobody waits for a receive that comes later in somebody's order */
	for (uint32_t r = 0; r < w.n; r++)
		for (uint32_t c = 0; c < w.n_channels; c++) {
			struct program *p = &op->program[r][c];
			uint32_t n = 0;

			for (uint32_t i = 0; i < p->n; i++)
				if (p->of[i].is_send) {
					struct instr t = p->of[i];

					memmove(&p->of[n + 1], &p->of[n], (i - n) * sizeof(t));
					p->of[n++] = t;
				}
		}
}

static void choose(struct op *op, uint32_t number)
{
	static const uint32_t dtypes[] = {COLL_INT8, COLL_INT32, COLL_INT64};
	static const uint32_t ring_kinds[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER,
					      COLL_BROADCAST, COLL_REDUCE};
	uint32_t how = number == 0 ? 0 : pick(10);

	memset(op, 0, sizeof(*op));
	op->dtype = dtypes[pick(3)];
	op->redop = pick(4);
	op->protocol = pick(3);
	op->n_channels = number == 0 ? w.n_channels : 1 + pick(w.n_channels);
	op->count = number == 0 ? 64 * w.n_channels + pick(200) : op->n_channels + pick(600);
	op->cap = 16 * (1 + pick(8));
	op->root = pick(w.n);
	op->algorithm = how < 5 ? PLUGIN_RING : how < 9 ? PLUGIN_TREE : WIRE_NCCL_DIRECT;
	op->kind = how < 5 ? ring_kinds[how] : how < 9 ? COLL_ALLREDUCE : COLL_SENDRECV;
	if (how == 9 && pick(2))
		op->kind = COLL_ALLTOALL; /* the same, but with the number of a collective */
	if (op->kind == COLL_ALLREDUCE && pick(4) == 0)
		op->redop = COLL_AVG;
	op->elements = op->count;
	if (op->kind == COLL_ALLGATHER || op->kind == COLL_REDUCESCATTER)
		op->elements *= w.n;
	if (is_direct(op)) {
		op->elements = 4096;
		op->protocol = PLUGIN_SIMPLE;
	}
}

void make_op(struct op *op, uint32_t number)
{
	uint64_t lag = pick(4);

	choose(op, number);
	for (uint32_t c = 1; c <= op->n_channels; c++) {
		uint64_t least = op->first[c - 1] + 1, left = op->n_channels - c;

		op->first[c] = c == op->n_channels
				       ? op->count
				       : least + pick((uint32_t)(op->count - left - least + 1)) /
							 (left ? left : 1);
	}
	for (uint32_t r = 0; r < w.n; r++) {
		size_t bytes = op->elements * element(op);

		op->input[r] = malloc(bytes);
		assert_non_null(op->input[r]);
		if (is_real(r))
			for (size_t i = 0; i < bytes; i++)
				op->input[r][i] = (unsigned char)rng_u64(&rng);
		else
			set_identity(op, op->input[r], op->elements);
		if (op->kind == COLL_ALLGATHER) { /* blocks of others are not there before */
			unsigned char *own = op->input[r] + r * op->count * element(op);
			unsigned char *all = malloc(bytes);

			assert_non_null(all);
			set_identity(op, all, op->elements);
			memcpy(all + r * op->count * element(op), own, op->count * element(op));
			free(op->input[r]);
			op->input[r] = all;
		}
		op->takes_part[r] = op->kind != COLL_SENDRECV;
		for (uint32_t c = 0; c < op->n_channels && !is_direct(op); c++) {
			if (op->algorithm == PLUGIN_TREE)
				tree(op, c, r, lag);
			else if (op->kind == COLL_BROADCAST || op->kind == COLL_REDUCE)
				chain(op, c, r);
			else
				ring(op, c, r);
		}
	}
	if (is_direct(op))
		direct(op);
}
