/* What a message of NCCL's own costs nboxd: rings of all-reduces on a world of 512 ranks, of which
 * one node of 8 is real. Each round of a communicator is one op: on each channel as many messages
 * come as go. No link: what is measured is checks, bitmaps, dependencies, pacing and bodies.
 *
 * bench-traffic [--json FILE] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "traffic/traffic.h"

#define RANKS 512
#define ON_NODE 8
#define CHANNELS 16
#define COMMS_MAX 64
#define MESSAGES (2 * (RANKS - 1))
#define POSTED 8 /* receives that NCCL has posted */

static struct traffic_comm *comms[COMMS_MAX];
static uint64_t n_sent, wanted[COMMS_MAX][CHANNELS], came[COMMS_MAX][CHANNELS];

static void check(int r, const struct err *err)
{
	if (r == 0)
		return;
	fprintf(stderr, "bench-traffic: %s\n", err->text);
	exit(1);
}

static struct traffic_at at_of(uint64_t seq, uint32_t channel, int is_send)
{
	return is_send ? (struct traffic_at){seq, ON_NODE - 1, ON_NODE, (uint16_t)channel}
		       : (struct traffic_at){seq, 0, RANKS - 1, (uint16_t)channel};
}

static void on_send(void *owner, void *tag, const struct traffic_message *m)
{
	(void)owner;
	(void)tag;
	(void)m;
	n_sent++;
}

static void on_failed(void *owner, void *tag, const char *sentence)
{
	(void)owner;
	(void)tag;
	fprintf(stderr, "bench-traffic: %s\n", sentence);
	exit(1);
}

static void open_comms(struct traffic *t, uint32_t n)
{
	static uint32_t node[RANKS];
	struct bitmap real;
	struct err err = {""};

	for (uint32_t r = 0; r < RANKS; r++)
		node[r] = r / ON_NODE;
	if (bitmap_init(&real, RANKS) < 0)
		exit(1);
	bitmap_set_range(&real, 0, ON_NODE);
	for (uint32_t i = 0; i < n; i++)
		check(traffic_comm_make(t, RANKS, node, &real, NULL, &comms[i], &err), &err);
	bitmap_deinit(&real);
}

static void begin(uint32_t i, uint64_t seq)
{
	struct traffic_call call = {.kind = COLL_ALLREDUCE,
				    .bytes = 1 << 20,
				    .start_ns = 0,
				    .end_ns = 1000};
	struct traffic_flow f = {.algorithm = PLUGIN_RING,
				 .protocol = PLUGIN_LL,
				 .n_channels = CHANNELS,
				 .n_messages = MESSAGES,
				 .message_bytes = 65536};
	struct err err = {""};

	for (uint32_t c = 0; c < CHANNELS; c++)
		for (int is_send = 0; is_send < 2; is_send++) {
			struct traffic_at at = at_of(seq, c, is_send);

			f.is_send = is_send;
			check(traffic_flow(comms[i], &at, &f, &err), &err);
		}
	for (uint32_t r = 0; r < ON_NODE; r++)
		check(traffic_call(comms[i], r, seq, &call, &err), &err);
	memset(wanted[i], 0, sizeof(wanted[i]));
	memset(came[i], 0, sizeof(came[i]));
}

/* One message more in each direction of a channel. */
static void go_on(uint32_t i, uint64_t seq, uint32_t c, uint64_t bytes)
{
	struct traffic_at in = at_of(seq, c, 0), out = at_of(seq, c, 1);
	struct traffic_body *body;
	struct err err = {""};

	while (wanted[i][c] < MESSAGES && wanted[i][c] < came[i][c] + POSTED)
		check(traffic_want(comms[i], &in, wanted[i][c]++, &err), &err);
	check(traffic_expect(comms[i], &out, came[i][c], bytes, &body, &err), &err);
	check(traffic_arrived(comms[i], &out, came[i][c]++, body, &err), &err);
}

static double run(uint32_t n_comms, uint64_t bytes, uint64_t *ret_messages)
{
	static const struct traffic_sink sink = {on_send, on_failed};
	struct traffic_bodies *bodies = bytes ? traffic_bodies_new(UINT64_C(1) << 32) : NULL;
	uint64_t begun, n = 0, n_ops = 4 * COMMS_MAX / n_comms;
	struct traffic *t;
	double ns;

	if (traffic_new(&sink, NULL, bodies, UINT64_MAX, &t) < 0)
		exit(1);
	open_comms(t, n_comms);
	begun = clock_now_ns();
	for (uint64_t seq = 0; seq < n_ops; seq++) {
		for (uint32_t i = 0; i < n_comms; i++)
			begin(i, seq);
		for (uint32_t m = 0; m < MESSAGES; m++)
			for (uint32_t i = 0; i < n_comms; i++) {
				for (uint32_t c = 0; c < CHANNELS; c++, n += 2)
					go_on(i, seq, c, bytes);
				traffic_advance(t, 1000000);
			}
		for (uint32_t i = 0; i < n_comms; i++)
			for (uint32_t r = 0; r < ON_NODE; r++)
				traffic_passed(comms[i], r, seq);
	}
	ns = (double)(clock_now_ns() - begun);
	if (n_sent * 2 != n)
		exit(1);
	n_sent = 0;
	traffic_free(t);
	traffic_bodies_free(bodies);
	*ret_messages = n;
	return ns;
}

int main(int argc, char **argv)
{
	static const struct {
		uint32_t n_comms;
		uint64_t bytes;
	} rows[] = {{1, 0}, {1, 8192}, {16, 0}, {64, 0}, {64, 8192}};
	FILE *json = argc == 3 && strcmp(argv[1], "--json") == 0 ? fopen(argv[2], "w") : NULL;

	printf("%8s %8s %8s %14s %12s\n", "flows", "bytes", "messages", "messages/s", "ns/message");
	if (json)
		fputs("{\"rows\": [", json);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t n;
		double ns = run(rows[i].n_comms, rows[i].bytes, &n);

		printf("%8u %8llu %8llu %14.0f %12.1f\n", rows[i].n_comms * CHANNELS * 2,
		       (unsigned long long)rows[i].bytes, (unsigned long long)n,
		       (double)n / ns * 1e9, ns / (double)n);
		if (json)
			fprintf(json,
				"%s{\"flows\": %u, \"bytes\": %llu, \"messages\": %llu, \"ns\": %.0f}",
				i ? ", " : "", rows[i].n_comms * CHANNELS * 2,
				(unsigned long long)rows[i].bytes, (unsigned long long)n, ns);
	}
	if (json) {
		fputs("]}\n", json);
		fclose(json);
	}
	return 0;
}
