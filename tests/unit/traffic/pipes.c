/* See world.h: messages, as a protocol lays them out, and their way from rank to rank. */
#include "world.h"

#include "reduce/reduce.h"

uint64_t wire_bytes(const struct op *op, uint64_t elements)
{
	uint64_t bytes = elements * element(op);

	if (op->protocol == PLUGIN_LL)
		return up_to(bytes, 8) * 2;
	if (op->protocol == PLUGIN_LL128)
		return up_to(bytes, 120) / 120 * 128;
	return bytes;
}

/* Where byte @i of the data lies. */
static uint64_t wire_place(const struct op *op, uint64_t i)
{
	if (op->protocol == PLUGIN_LL)
		return i / 8 * 16 + i % 8 / 4 * 8 + i % 4;
	if (op->protocol == PLUGIN_LL128)
		return i / 120 * 128 + i % 120;
	return i;
}

void to_wire(const struct op *op, const unsigned char *from, uint64_t bytes, unsigned char *to,
	     uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = (unsigned char)rng_u64(&rng); /* flags, and beyond the end */
	for (uint64_t i = 0; i < bytes; i++)
		to[wire_place(op, i)] = from[i];
}

void from_wire(const struct op *op, const unsigned char *from, unsigned char *to, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		to[i] = from[wire_place(op, i)];
}

struct message *new_message(const unsigned char *data, uint64_t bytes)
{
	struct message *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->bytes = bytes;
	m->data = malloc(bytes + 1);
	assert_non_null(m->data);
	if (data)
		memcpy(m->data, data, bytes);
	return m;
}

void free_message(struct message *m)
{
	free(m->data);
	free(m);
}

void put(struct pipe *p, struct message *m)
{
	if (!p->first)
		p->last = &p->first;
	*p->last = m;
	p->last = &m->next;
	m->next = NULL;
}

struct message *get(struct pipe *p)
{
	struct message *m = p->first;

	if (m)
		p->first = m->next;
	return m;
}

void reduce(const struct op *op, void *to, const void *data, uint64_t n)
{
	reduce_apply(op->dtype, op->redop == COLL_AVG ? COLL_SUM : op->redop, to, to, data, n);
}

void prepare(const struct op *op, const struct instr *in, unsigned char *buffer)
{
	unsigned char *at = buffer + in->at * element(op);

	if (in->divides)
		reduce_average(op->dtype, at, at, w.n, in->n);
}

void receive(const struct op *op, const struct instr *in, unsigned char *buffer,
	     const unsigned char *data)
{
	unsigned char *to = buffer + in->at * element(op);

	if (in->reduces)
		reduce(op, to, data, in->n);
	else
		memcpy(to, data, in->n * element(op));
}
