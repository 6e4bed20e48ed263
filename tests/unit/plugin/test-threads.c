/* NCCL's proxies in threads of their own beside the progress thread, and a close beside it. */
#include "cmocka-all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

#define N_PROXIES 3
#define N_OPS 60

static _Atomic int n_proxies_left;

struct proxy {
	pthread_t thread;
	int channel;
	uint64_t seed;
	struct connection out, in;
	void *calls[N_OPS];
};

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return *seed >> 33;
}

/* Message i of op o on channel c is full of one byte. */
static unsigned char mark(uint64_t seq, uint64_t channel, uint64_t index)
{
	return (unsigned char)(1 + (seq * 7 + channel * 5 + index * 3) % 250);
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;

	for (uint64_t seq = 0; seq < N_OPS; seq++) {
		int protocol = (int)(seq % 3), slices = protocol == PLUGIN_SIMPLE ? 2 : 1;
		uint64_t n = 12, depth = (uint64_t)(N_SLOTS / slices);
		struct proxy_op ops[2];

		proxy_start(&ops[0], &p->out, p->calls[seq], protocol, p->channel, PEER, (int)n,
			    slices);
		proxy_start(&ops[1], &p->in, p->calls[seq], protocol, p->channel, PEER, (int)n,
			    slices);
		while (ops[0].done < n || ops[1].done < n) {
			struct proxy_op *op = &ops[draw(&p->seed) % 2];
			uint64_t i = op->done;
			bool is_posted;
			int bytes;

			if (op->posted < n && op->posted < op->done + depth && draw(&p->seed) % 2) {
				if (op == &ops[0])
					memset(proxy_buffer(op, op->posted),
					       mark(seq, (uint64_t)p->channel, op->posted), 1280);
				if (proxy_post(op, 1280, &is_posted) || !is_posted)
					abort();
			} else if (op->posted > op->done && proxy_test(op, &bytes) &&
				   op == &ops[1] && seq % 2 == 0) {
				const unsigned char *at = proxy_buffer(op, i);

				if (at[0] != mark(seq, (uint64_t)p->channel, i) ||
				    /* the last byte of data, or the first of the last four */
				    at[protocol == PLUGIN_LL ? 1280 - 8 : 1280 - 9] != at[0])
					abort();
			}
		}
		proxy_stop(&ops[0]);
		proxy_stop(&ops[1]);
	}
	atomic_fetch_sub(&n_proxies_left, 1);
	return NULL;
}

/* The progress thread: bodies are checked as the link takes them, and receives get their answers
 * late, in any order, every second op the identity. */
static void be_the_progress_thread(void)
{
	struct sent_frame wants[256];
	size_t n_wants = 0;
	uint64_t seed = 99;

	while (n_proxies_left) {
		struct sent_frame f;

		notes_run();
		while (n_wants < 256 && session_next(&f)) {
			if (f.h.type == WIRE_WANT)
				wants[n_wants++] = f;
			if (f.h.type != WIRE_MESSAGE)
				continue;
			assert_int_equal(*(const unsigned char *)f.body,
					 mark(f.h.seq, f.h.lane, f.h.index));
			events()->sent(f.cookie);
		}
		while (n_wants && draw(&seed) % 3) {
			size_t i = draw(&seed) % n_wants;

			f = wants[i];
			wants[i] = wants[--n_wants];
			memset(sent_bytes, mark(f.h.seq, f.h.lane, f.h.index), 1280);
			play_answer_well(&f, 1280, f.h.seq % 2 ? WIRE_MESSAGE_IDENTITY : 0);
		}
	}
}

static void test_threads(void **state)
{
	struct proxy proxies[N_PROXIES];

	(void)state;
	play_begin(5, EXCHANGE_PAYLOAD);
	n_proxies_left = N_PROXIES;
	for (uint64_t seq = 0; seq < N_OPS; seq++) {
		void *call = start_all_reduce(seq, (int)(seq % 3));

		for (int i = 0; i < N_PROXIES; i++)
			proxies[i].calls[seq] = call;
	}
	for (int i = 0; i < N_PROXIES; i++) {
		proxies[i].channel = i;
		proxies[i].seed = (uint64_t)i;
		connection_open(&proxies[i].out, &nccl, true, false);
		connection_open(&proxies[i].in, &nccl, false, false);
		pthread_create(&proxies[i].thread, NULL, proxy_main, &proxies[i]);
	}
	be_the_progress_thread();
	for (int i = 0; i < N_PROXIES; i++) {
		pthread_join(proxies[i].thread, NULL);
		connection_close(&proxies[i].out);
		connection_close(&proxies[i].in);
	}
	assert_string_equal(session_failure(), "");
	play_end();
}

static _Atomic bool is_closed;

static void *close_main(void *arg)
{
	connection_close(arg);
	is_closed = true;
	return NULL;
}

/* NCCL aborts: it deregisters buffers that messages are under way from and to, frees them, and
 * closes. */
static void test_close_waits_for_the_link(void **state)
{
	struct connection out, in;
	struct proxy_op sends, receives;
	struct sent_frame f;
	pthread_t threads[2];
	void *call;

	(void)state;
	play_begin(5, EXCHANGE_PAYLOAD);
	connection_open(&out, &nccl, true, false);
	connection_open(&in, &nccl, false, false);
	call = start_all_reduce(0, PLUGIN_SIMPLE);
	proxy_start(&sends, &out, call, PLUGIN_SIMPLE, 0, PEER, 8, 2);
	proxy_start(&receives, &in, call, PLUGIN_SIMPLE, 0, PEER, 8, 2);
	play_post(&receives, 1 << 20);
	next_frame(WIRE_FLOW);
	next_frame(WIRE_WANT);
	play_post(&sends, 5000);
	next_frame(WIRE_FLOW);
	f = next_frame(WIRE_MESSAGE);
	is_closed = false;
	pthread_create(&threads[0], NULL, close_main, &in);
	while (!is_closed) /* a receive that nobody answers is no reason to wait */
		notes_run();
	is_closed = false;
	pthread_create(&threads[1], NULL, close_main, &out);
	while (!notes_run())
		;
	assert_false(is_closed);
	assert_int_equal(((const unsigned char *)f.body)[4999], 0x5a); /* it is still there */
	events()->sent(f.cookie);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	play_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_close_waits_for_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
