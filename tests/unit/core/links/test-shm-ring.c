/* The ring of a shm link with both ends in one process: one thread writes, another reads, both
 * sleep when they can. Under ThreadSanitizer a missing acquire or release shows as a race, on any
 * machine. A lost wake-up shows as the test's timeout. */
#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "links/shm-ring.h"

#define RING_BYTES 4096
#define TOTAL_BYTES (UINT64_C(2) << 20)
#define PART_MAX 1500

struct end {
	struct ring ring;
	struct rng rng;
	int bell, partners_bell;
};

static void ring_bell(const struct end *e)
{
	uint64_t one = 1;

	assert_int_equal(write(e->partners_bell, &one, sizeof(one)), sizeof(one));
}

static void sleep_until_bell(const struct end *e)
{
	uint64_t n;

	assert_int_equal(read(e->bell, &n, sizeof(n)), sizeof(n));
}

static unsigned char byte_at(uint64_t i)
{
	return (unsigned char)(i * 31 + (i >> 12));
}

static void *write_all(void *arg)
{
	struct end *e = arg;
	struct ring *r = &e->ring;
	unsigned char part[PART_MAX];

	while (r->pos < TOTAL_BYTES) {
		uint64_t n = 1 + rng_u64(&e->rng) % PART_MAX;

		assert_int_equal(ring_refresh_head(r), 0);
		n = n < ring_room(r) ? n : ring_room(r);
		n = n < TOTAL_BYTES - r->pos ? n : TOTAL_BYTES - r->pos;
		for (uint64_t i = 0; i < n; i++)
			part[i] = byte_at(r->pos + i);
		ring_copy_in(r, part, n);
		if (ring_publish_tail(r))
			ring_bell(e);
		if (!n && ring_arm_writer(r))
			sleep_until_bell(e);
		ring_disarm_writer(r);
	}
	return NULL;
}

static void *read_all(void *arg)
{
	struct end *e = arg;
	struct ring *r = &e->ring;
	unsigned char part[PART_MAX];
	uint64_t n_wrong = 0;

	while (r->pos < TOTAL_BYTES) {
		uint64_t n = 1 + rng_u64(&e->rng) % PART_MAX, first = r->pos;

		assert_int_equal(ring_refresh_tail(r), 0);
		n = n < ring_filled(r) ? n : ring_filled(r);
		ring_copy_out(r, part, n);
		for (uint64_t i = 0; i < n; i++)
			n_wrong += part[i] != byte_at(first + i);
		if (ring_publish_head(r))
			ring_bell(e);
		if (!n && ring_arm_reader(r))
			sleep_until_bell(e);
		ring_disarm_reader(r);
	}
	return (void *)(uintptr_t)n_wrong;
}

static void all_bytes_come_in_order(void **state)
{
	void *area = aligned_alloc(4096, shm_area_bytes(RING_BYTES)), *n_wrong;
	int bells[2] = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
	struct end writer = {.bell = bells[0], .partners_bell = bells[1]};
	struct end reader = {.bell = bells[1], .partners_bell = bells[0]};
	pthread_t threads[2];

	(void)state;
	assert_non_null(area);
	assert_true(bells[0] >= 0 && bells[1] >= 0);
	memset(area, 0, shm_area_bytes(RING_BYTES));
	ring_init(&writer.ring, area, 1, RING_BYTES);
	ring_init(&reader.ring, area, 1, RING_BYTES);
	rng_seed(&writer.rng, 1, 0);
	rng_seed(&reader.rng, 1, 1);
	assert_int_equal(pthread_create(&threads[0], NULL, write_all, &writer), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, read_all, &reader), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], &n_wrong);
	assert_int_equal((uintptr_t)n_wrong, 0);
	assert_true(writer.ring.pos == TOTAL_BYTES && reader.ring.pos == TOTAL_BYTES);
	close(bells[0]);
	close(bells[1]);
	free(area);
}

/* A position beyond the ring, or of bytes that were never written, is refused. */
static void hostile_positions_are_refused(void **state)
{
	void *area = aligned_alloc(4096, shm_area_bytes(RING_BYTES));
	struct ring writer = {0}, reader = {0};
	char bytes[100] = {0};

	(void)state;
	assert_non_null(area);
	memset(area, 0, shm_area_bytes(RING_BYTES));
	ring_init(&writer, area, 0, RING_BYTES);
	ring_init(&reader, area, 0, RING_BYTES);
	ring_copy_in(&writer, bytes, sizeof(bytes));
	assert_false(ring_publish_tail(&writer));
	writer.words->head = sizeof(bytes) + 1;
	assert_int_equal(ring_refresh_head(&writer), -EPROTO);
	reader.words->tail = RING_BYTES + 1;
	assert_int_equal(ring_refresh_tail(&reader), -EPROTO);
	reader.words->tail = RING_BYTES;
	assert_int_equal(ring_refresh_tail(&reader), 0);
	ring_copy_out(&reader, NULL, sizeof(bytes));
	reader.words->tail = sizeof(bytes) - 1; /* it goes back */
	assert_int_equal(ring_refresh_tail(&reader), -EPROTO);
	free(area);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_come_in_order),
		cmocka_unit_test(hostile_positions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
