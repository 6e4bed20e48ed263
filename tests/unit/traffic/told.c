/* See told.h. */
#include "told.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"

struct told told;
struct err err;

static void on_send(void *owner, void *tag, const struct traffic_message *m)
{
	(void)owner;
	(void)tag;
	told.n_sent++;
	told.n_identity += m->is_identity;
	told.bytes = m->bytes;
	told.first = m->body ? m->body->at[0] : 0;
}

static void on_failed(void *owner, void *tag, const char *sentence)
{
	(void)owner;
	(void)tag;
	snprintf(told.failed, sizeof(told.failed), "%s", sentence);
}

int open_more(uint32_t n_real, struct traffic_comm **ret)
{
	static const uint32_t node[] = {5, 5, 9, 9, 2, 2};
	struct bitmap real;
	int r;

	assert_int_equal(bitmap_init(&real, 6), 0);
	bitmap_set_range(&real, 0, n_real);
	r = traffic_comm_make(told.t, 6, node, &real, ret, ret, &err);
	bitmap_deinit(&real);
	return r;
}

int open_with(uint32_t n_real, bool has_bodies)
{
	static const struct traffic_sink sink = {on_send, on_failed};

	memset(&told, 0, sizeof(told));
	memset(&err, 0, sizeof(err));
	told.bodies = has_bodies ? traffic_bodies_new(TOLD_POOL_BYTES) : NULL;
	assert_int_equal(traffic_new(&sink, NULL, told.bodies, TOLD_MAX_BYTES, &told.t), 0);
	return open_more(n_real, &told.c);
}

void close_all(void)
{
	traffic_free(told.t);
	traffic_bodies_free(told.bodies);
}

int flow(uint64_t seq, uint32_t rank, uint32_t peer, bool is_send, uint32_t algorithm, uint64_t n)
{
	struct traffic_at at = {seq, rank, peer, 0};
	struct traffic_flow f = {is_send, algorithm, PLUGIN_LL, 1, n, 64, false};

	return traffic_flow(told.c, &at, &f, &err);
}

int call(uint64_t seq, uint32_t rank, uint32_t kind, uint32_t root)
{
	struct traffic_call c = {.kind = kind,
				 .dtype = COLL_INT32,
				 .root = root,
				 .bytes = 96,
				 .start_ns = 100,
				 .end_ns = 200};

	return traffic_call(told.c, rank, seq, &c, &err);
}

int want(uint64_t seq, uint32_t rank, uint32_t peer, uint64_t index)
{
	struct traffic_at at = {seq, rank, peer, 0};

	return traffic_want(told.c, &at, index, &err);
}

int arrive(uint64_t seq, uint32_t rank, uint32_t peer, uint64_t index, uint64_t bytes,
	   unsigned char fill)
{
	struct traffic_at at = {seq, rank, peer, 0};
	struct traffic_body *body;
	int r = traffic_expect(told.c, &at, index, bytes, &body, &err);

	if (body)
		memset(body->at, fill, bytes);
	return r < 0 ? r : traffic_arrived(told.c, &at, index, body, &err);
}

void refused(int r, const char *why)
{
	assert_int_equal(r, -EPROTO);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
	/* nothing more comes of the communicator, and nobody is hurt */
	assert_int_equal(want(0, 0, 5, 0), 0);
	assert_int_equal(traffic_advance(told.t, 1000), UINT64_MAX);
	close_all();
}
