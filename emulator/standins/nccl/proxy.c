/* What other threads and the proxy thread share: the requests for the proxy thread, and the lists
 * of the process's connections, communicators and ports, which only the proxy thread touches.
 * loop.c runs them. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "standins/nccl/impl.h"

struct proxy px = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &px.first, .wake_fd = -1};

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

void futex_wait_done(_Atomic uint32_t *word)
{
	static _Thread_local struct spin spin;
	uint64_t start = clock_now_ns(), spin_until = start + spin_budget_ns(&spin);

	while (!atomic_load_explicit(word, memory_order_acquire)) {
		if (clock_now_ns() < spin_until)
			sched_yield();
		else
			futex(word, FUTEX_WAIT_PRIVATE, 0);
	}
	spin_learn(&spin, clock_now_ns() - start);
}

void futex_wake_done(_Atomic uint32_t *word)
{
	atomic_store_explicit(word, 1, memory_order_release);
	futex(word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* --- requests ---------------------------------------------------------------- */

void proxy_push(struct request *r)
{
	uint64_t one = 1;

	r->next = NULL;
	pthread_mutex_lock(&px.lock);
	*px.end = r;
	px.end = &r->next;
	pthread_mutex_unlock(&px.lock);
	/* as in the shim's progress_post(): the mutex shows us @is_asleep if the proxy looked
	 * before us */
	if (atomic_load(&px.is_asleep) && write(px.wake_fd, &one, sizeof(one)) < 0) {
		/* the counter is full: the proxy is awake */
	}
}

void proxy_call(void (*fn)(void *arg), void *arg)
{
	_Atomic uint32_t done = 0;
	struct request r = {.fn = fn, .arg = arg, .done = &done};

	proxy_push(&r);
	futex_wait_done(&done);
}

int proxy_post(void (*fn)(void *arg), void *arg)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->arg = arg;
	r->is_owned = true;
	proxy_push(r);
	return 0;
}

/* --- communicators and connections of the process ------------------------------ */

void proxy_add_conn(struct conn *k)
{
	k->next = px.conns;
	px.conns = k;
}

struct conn *proxy_conns(void)
{
	return px.conns;
}

struct ncclComm *proxy_find_comm(const uint8_t magic[16], uint32_t rank, bool *ret_is_gone)
{
	struct ncclComm *c;
	uint32_t i;

	*ret_is_gone = false;
	for (c = px.comms; c; c = c->proxy_next) {
		if (c->rank == rank && !memcmp(c->magic, magic, 16))
			return c;
	}
	for (i = 0; i < GONE && i < px.n_gone; i++) {
		if (px.gone[i].rank == rank && !memcmp(px.gone[i].magic, magic, 16))
			*ret_is_gone = true;
	}
	return NULL;
}

uint32_t proxy_generation(void)
{
	return px.generation;
}

static void do_add_port(void *arg)
{
	struct port_ref *r = arg;

	r->next = px.ports;
	px.ports = r;
}

static void do_remove_port(void *arg)
{
	struct port_ref **p, *r;
	struct conn *k;

	for (p = &px.ports; *p && (*p)->port != arg;)
		p = &(*p)->next;
	if (!*p)
		return;
	r = *p;
	*p = r->next;
	free(r);
	for (k = px.conns; k; k = k->next) {
		if (k->port == arg) {
			k->port = NULL;
			if (k->is_parked)
				k->is_dead = true; /* nobody can come for it any more */
		}
	}
}

void proxy_add_port(struct port *p)
{
	struct port_ref *r = calloc(1, sizeof(*r));

	if (r) {
		r->port = p;
		proxy_call(do_add_port, r);
	}
}

void proxy_remove_port(struct port *p)
{
	proxy_call(do_remove_port, p);
}
