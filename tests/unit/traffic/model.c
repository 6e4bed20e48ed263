/* See world.h: the slow model, and that it does what ops are by their definition. */
#include "world.h"

#include "reduce/reduce.h"

static bool model_step(struct op *op, uint32_t number, uint32_t r, uint32_t c)
{
	struct program *p = &op->program[r][c];
	const struct instr *in = p->n ? &p->of[p->at] : NULL;
	size_t bytes;

	if (p->at == p->n)
		return false;
	bytes = in->n * element(op);
	if (in->is_send) {
		struct message *m;

		prepare(op, in, op->model[r]);
		m = new_message(op->model[r] + in->at * element(op), bytes);

		m->op = number;
		if (is_net(r, in->peer) && is_real(in->peer)) {
			struct message *copy = new_message(m->data, bytes);

			copy->op = number;
			if (!w.sent[r][in->peer][c])
				w.last_sent[r][in->peer][c] = &w.sent[r][in->peer][c];
			*w.last_sent[r][in->peer][c] = copy;
			w.last_sent[r][in->peer][c] = &copy->next;
		}
		put(&w.pipe[r][in->peer][c], m);
	} else {
		struct message *m = get(&w.pipe[in->peer][r][c]);

		if (!m)
			return false;
		assert_int_equal(m->bytes, bytes);
		receive(op, in, op->model[r], m->data);
		free_message(m);
	}
	p->at++;
	return true;
}

/* What an op of all ranks is by its definition. */
static void check_model(const struct op *op)
{
	uint64_t n = op->elements;
	unsigned char *want = malloc(n * element(op));
	bool all = op->kind == COLL_ALLREDUCE;

	assert_non_null(want);
	set_identity(op, want, n);
	for (uint32_t r = 0; r < w.n; r++)
		reduce(op, want, op->input[r], n);
	if (op->redop == COLL_AVG)
		reduce_average(op->dtype, want, want, w.n, n);
	for (uint32_t r = 0; r < w.n; r++) {
		uint64_t at = op->kind == COLL_REDUCESCATTER ? r * op->count * element(op) : 0;

		if (all || (op->kind == COLL_REDUCE && r == op->root) ||
		    op->kind == COLL_REDUCESCATTER)
			assert_memory_equal(op->model[r] + at, want + at, op->count * element(op));
		if (op->kind == COLL_BROADCAST)
			assert_memory_equal(op->model[r], op->input[op->root], n * element(op));
		for (uint32_t o = 0; op->kind == COLL_ALLGATHER && o < w.n; o++)
			assert_memory_equal(op->model[r] + o * op->count * element(op),
					    op->input[o] + o * op->count * element(op),
					    op->count * element(op));
	}
	free(want);
}

void run_model(void)
{
	for (uint32_t i = 0; i < w.n_ops; i++) {
		struct op *op = &w.op[i];
		bool moved = true;

		for (uint32_t r = 0; r < w.n; r++) {
			op->model[r] = malloc(op->elements * element(op));
			assert_non_null(op->model[r]);
			memcpy(op->model[r], op->input[r], op->elements * element(op));
		}
		while (moved) {
			moved = false;
			for (uint32_t r = 0; r < w.n; r++)
				for (uint32_t c = 0; c < w.n_channels; c++)
					while (model_step(op, i, r, c))
						moved = true;
		}
		for (uint32_t r = 0; r < w.n; r++)
			for (uint32_t c = 0; c < w.n_channels; c++) {
				assert_int_equal(op->program[r][c].at, op->program[r][c].n);
				op->program[r][c].at = 0;
			}
		check_model(op);
	}
}
