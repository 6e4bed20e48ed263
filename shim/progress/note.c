/* See note.h. */
#include "shim/progress/note.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock; /* of the list; after the end: of everything */
	struct note *first, **last;
	_Atomic bool is_asleep; /* see note_post() and note_nudge() */
	_Atomic bool is_closed;
	_Atomic bool is_child;
	int fd;
} g = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.last = &g.first,
	.fd = -1,
};

static void wake(void)
{
	uint64_t one = 1;
	ssize_t n = write(g.fd, &one, sizeof(one));

	(void)n; /* the counter is full: it is readable anyway */
}

void note_post(struct note *n, enum note_wake how)
{
	if (note_is_child())
		return;
	pthread_mutex_lock(&g.lock);
	if (atomic_load_explicit(&g.is_closed, memory_order_relaxed)) {
		n->run(n);
		pthread_mutex_unlock(&g.lock);
		return;
	}
	n->next = NULL;
	*g.last = n;
	g.last = &n->next;
	pthread_mutex_unlock(&g.lock);
	/* Either the sleeper looks at the list after us and sees the note, or its look was before
	 * ours: then the mutex shows us the @is_asleep that it had set. The mutex alone does that,
	 * on any machine. */
	if (how == NOTE_WAKE)
		note_nudge();
}

void note_nudge(void)
{
	/* seq_cst, after the device counted what was enqueued (n_pending in cuda-gate.c): see
	 * sleep_until() in progress.c. Each side stores one word and then loads the other's, which
	 * release and acquire do not keep in order. */
	if (atomic_exchange(&g.is_asleep, false))
		wake();
}

bool note_is_child(void)
{
	return atomic_load_explicit(&g.is_child, memory_order_relaxed);
}

int note_open(void)
{
	g.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return g.fd < 0 ? -errno : 0;
}

static bool run_list(struct note *n)
{
	bool any = n != NULL;

	while (n) {
		struct note *next = n->next;

		n->run(n);
		n = next;
	}
	return any;
}

bool note_run_all(void)
{
	struct note *list;

	pthread_mutex_lock(&g.lock);
	list = g.first;
	g.first = NULL;
	g.last = &g.first;
	pthread_mutex_unlock(&g.lock);
	return run_list(list);
}

bool note_arm(int *ret_fd)
{
	bool is_empty;

	atomic_store(&g.is_asleep, true);
	pthread_mutex_lock(&g.lock);
	is_empty = !g.first;
	pthread_mutex_unlock(&g.lock);
	*ret_fd = g.fd;
	return is_empty;
}

bool note_disarm(bool is_readable)
{
	uint64_t count;

	atomic_store(&g.is_asleep, false);
	return is_readable && read(g.fd, &count, sizeof(count)) > 0;
}

void note_close(void)
{
	pthread_mutex_lock(&g.lock);
	atomic_store(&g.is_closed, true);
	run_list(g.first);
	g.first = NULL;
	g.last = &g.first;
	pthread_mutex_unlock(&g.lock);
}

void note_in_child(void)
{
	atomic_store(&g.is_child, true);
	pthread_mutex_init(&g.lock, NULL);
}
