/* nboxd/store/gloo/ring.h: whole all-gathers, in which real ranks do as gloo's do and hear virtual
 * ones from the ring, in any order. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "nboxd/store/gloo/ring.h"
#include "topology/template.h"

#define N_MAX 16
#define PART_MAX 9

struct rank {
	uint8_t out[N_MAX][PART_MAX];
	uint32_t n_sent, n_received; /* messages */
	bool has[N_MAX][2];
};

struct world {
	struct gloo_ranks g;
	uint32_t real[N_MAX];
	uint32_t part_bytes;
	struct rank ranks[N_MAX];
	struct gloo_ring ring;
};

static bool is_real(const struct world *w, uint32_t rank)
{
	for (size_t i = 0; i < w->g.n_real; i++)
		if (w->real[i] == rank)
			return true;
	return false;
}

static uint32_t half_bytes(const struct world *w, uint32_t number)
{
	return number & 1 ? w->part_bytes - w->part_bytes / 2 : w->part_bytes / 2;
}

static uint8_t *half_at(struct world *w, uint32_t rank, uint32_t part, uint32_t number)
{
	return w->ranks[rank].out[part] + (number & 1 ? w->part_bytes / 2 : 0);
}

/* One message of real rank @r to the next one, if it may: two may be under way. */
static bool send_one(struct world *w, uint32_t r)
{
	struct rank *me = &w->ranks[r];
	uint32_t n = w->g.members.n_ranks, i = me->n_sent, part = (r + n - i / 2 % n) % n,
		 to = (r + 1) % n;

	if (i == 2 * (n - 1) || !me->has[part][i & 1] || i >= me->n_received + 2)
		return false;
	if (!is_real(w, to)) {
		assert_int_equal(gloo_ring_put(&w->ring, &w->g, r, half_at(w, r, part, i),
					       half_bytes(w, i)),
				 0);
	} else {
		if (w->ranks[to].n_received != i)
			return false;
		memcpy(half_at(w, to, part, i), half_at(w, r, part, i), half_bytes(w, i));
		w->ranks[to].has[part][i & 1] = true;
		w->ranks[to].n_received++;
	}
	me->n_sent++;
	return true;
}

/* One message of a virtual rank to real rank @r, if it is known. */
static bool receive_one(struct world *w, uint32_t r)
{
	struct rank *me = &w->ranks[r];
	uint32_t n = w->g.members.n_ranks, i = me->n_received, before = (r + n - 1) % n,
		 part = (before + n - i / 2 % n) % n;
	const uint8_t *bytes = NULL;

	if (is_real(w, before) || i == 2 * (n - 1))
		return false;
	if (gloo_ring_get(&w->ring, &w->g, r, half_bytes(w, i), &bytes) != 1)
		return false;
	memcpy(half_at(w, r, part, i), bytes, half_bytes(w, i));
	me->has[part][i & 1] = true;
	me->n_received++;
	return true;
}

static bool is_over(const struct world *w)
{
	uint32_t n = w->g.members.n_ranks, all = 2 * (n - 1);

	for (size_t k = 0; k < w->g.n_real; k++) {
		uint32_t r = w->real[k];

		if ((!is_real(w, (r + 1) % n) && w->ranks[r].n_sent < all) ||
		    (!is_real(w, (r + n - 1) % n) && w->ranks[r].n_received < all))
			return false;
	}
	return true;
}

/* @mask: who is real. */
static void gather(uint32_t n, uint32_t gpus, const uint32_t *classes, uint32_t mask,
		   uint32_t part_bytes)
{
	static struct world w;
	struct templates templates;
	bool moved = true;

	memset(&w, 0, sizeof(w));
	w.part_bytes = part_bytes;
	w.g = (struct gloo_ranks){{.n_ranks = n, .stride = 1}, gpus, classes, w.real, 0};
	for (uint32_t r = 0; r < n; r++)
		if (mask & 1u << r)
			w.real[w.g.n_real++] = r;
	for (size_t k = 0; k < w.g.n_real; k++) {
		memset(w.ranks[w.real[k]].out[w.real[k]], (int)(w.real[k] + 1), part_bytes);
		w.ranks[w.real[k]].has[w.real[k]][0] = w.ranks[w.real[k]].has[w.real[k]][1] = true;
	}
	while (moved) {
		assert_int_equal(gloo_ring_is_over(&w.ring, &w.g), w.g.n_real == n || is_over(&w));
		moved = false;
		for (size_t i = 0; i < 4 * w.g.n_real; i++) {
			uint32_t r = w.real[(size_t)rand() % w.g.n_real];

			moved = (rand() & 1 ? send_one(&w, r) : receive_one(&w, r)) || moved;
		}
		for (size_t k = 0; k < w.g.n_real && !moved; k++)
			moved = send_one(&w, w.real[k]) || receive_one(&w, w.real[k]);
	}
	assert_int_equal(templates_init(&templates, &w.g.members, gpus, classes, w.g.real,
					w.g.n_real),
			 0);
	for (size_t k = 0; k < w.g.n_real; k++) {
		const struct rank *me = &w.ranks[w.real[k]];

		assert_int_equal(me->n_sent, 2 * (n - 1));
		assert_int_equal(me->n_received, 2 * (n - 1));
		for (uint32_t part = 0; part < n; part++)
			for (uint32_t i = 0; i < part_bytes; i++)
				assert_int_equal(me->out[part][i],
						 1 + w.real[template_of(&templates, part)]);
	}
	templates_deinit(&templates);
	gloo_ring_deinit(&w.ring);
}

static void every_rank_gathers_the_parts_of_all_templates(void **state)
{
	static const uint32_t stages[16] = {[4] = 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};

	(void)state;
	srand(1);
	for (uint32_t n = 2; n <= 7; n++)
		for (uint32_t mask = 1; mask < 1u << n; mask++)
			for (uint32_t bytes = 1; bytes <= PART_MAX; bytes += 4)
				gather(n, 1 + n % 3, NULL, mask, bytes);
	gather(16, 8, NULL, 0x3, 8);
	gather(16, 1, NULL, 0xc000, 8);
	gather(16, 4, NULL, 0x0240, 8);
	gather(16, 4, stages, 0x0240, 8);
}

static void a_message_too_many_or_of_another_size_is_refused(void **state)
{
	const uint32_t real[] = {0, 1};
	const struct gloo_ranks g = {{.n_ranks = 4, .stride = 1}, 2, NULL, real, 2};
	struct gloo_ring ring = {0};
	const uint8_t *bytes;

	(void)state;
	assert_int_equal(gloo_ring_put(&ring, &g, 2, "x", 1), -EPROTO); /* is virtual */
	assert_int_equal(gloo_ring_get(&ring, &g, 2, 1, &bytes), -EPROTO);
	assert_int_equal(gloo_ring_get(&ring, &g, 0, 1, &bytes), 0); /* rank 3's is rank 1's */
	assert_int_equal(gloo_ring_put(&ring, &g, 1, "x", 1), 0);
	assert_int_equal(gloo_ring_get(&ring, &g, 0, 2, &bytes), -EPROTO); /* of another size */
	assert_int_equal(gloo_ring_get(&ring, &g, 0, 1, &bytes), 1);
	assert_int_equal(bytes[0], 'x');
	for (int i = 1; i < 6; i++)
		assert_int_equal(gloo_ring_put(&ring, &g, 1, "x", 1), 0);
	assert_int_equal(gloo_ring_put(&ring, &g, 1, "x", 1), -EPROTO); /* one too many */
	gloo_ring_deinit(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_gathers_the_parts_of_all_templates),
		cmocka_unit_test(a_message_too_many_or_of_another_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
