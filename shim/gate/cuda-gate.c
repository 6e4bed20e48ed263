/* See cuda-gate.h. */
#include "shim/gate/cuda-gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PAGE_SLOTS 512
#define OUT_OF_MEMORY ((CUresult)2) /* CUDA_ERROR_OUT_OF_MEMORY */
#define LINE_WORDS 16               /* of 4 bytes, in a cache line */
#define NAP_SHARE 64                /* of the time that nothing moved */
#define NAP_MIN_NS (10 * NS_PER_US)
#define NAP_BUSY_NS (100 * NS_PER_US)
#define NAP_IDLE_NS (1 * NS_PER_MS)

enum { STATE_IDLE, STATE_ARRIVED, STATE_DONE };
enum phase { PHASE_IDLE, PHASE_ARRIVED, PHASE_RELEASED };

/* The device is the other side of the words: see cuda-gate.h. */
struct cuda_slot {
	struct gate *gate; /* borrowed; NULL: a stamp's */
	struct stamp *stamp;
	_Atomic uint32_t *state, *release;
	CUdeviceptr state_at, release_at;
	struct cuda_slot *next_free; /* under the lock */
	bool is_captured;            /* of a stamp */

	/* The progress thread's. */
	struct cuda_slot *next_going, *next_arrived;
	enum phase phase;
	bool is_done; /* local_done_ns is stamped */
};

struct page {
	struct page *next;       /* constant once published */
	_Atomic uint32_t *words; /* pinned: all states, then all release words */
	_Atomic uint32_t n_used; /* slots ever given out; release, pairs with poll */
	struct cuda_slot slots[PAGE_SLOTS];
};

static struct {
	pthread_mutex_t lock;
	_Atomic(struct page *) pages; /* newest first; never freed */
	struct cuda_slot *free;
	/* Passes that a stream may be in: enqueued ones, and replays since they arrived.
	 * seq_cst: see cuda_gate_nap_ns(). */
	_Atomic uint32_t n_pending;
	_Atomic uint32_t n_captured; /* passes in graphs */

	/* The progress thread's. */
	struct cuda_slot *going;                   /* arrived and not passed */
	struct cuda_slot *arrived, **last_arrived; /* in this look, to be noted at its end */
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- slots -------------------------------------------------------------------- */

/* The words' memory is the shim's, the driver only pins it: the progress thread may look at it as
 * long as the process lives, whatever becomes of the device's context (cudaDeviceReset, the
 * runtime's own end). It is shared, so that a fork does not copy it away from the device. */
static CUresult pin(const struct cuda_driver *d, size_t bytes, void **ret, CUdeviceptr *ret_at)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUresult r;

	if (mem == MAP_FAILED)
		return OUT_OF_MEMORY;
	r = d->MemHostRegister(mem, bytes,
			       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (r == CUDA_SUCCESS) {
		r = d->MemHostGetDevicePointer(ret_at, mem, 0);
		if (r != CUDA_SUCCESS)
			d->MemHostUnregister(mem);
	}
	if (r != CUDA_SUCCESS) {
		munmap(mem, bytes);
		return r;
	}
	*ret = mem;
	return r;
}

/* Under the lock. In a relaxed mode, so that pinning does not become part of a capture. */
static CUresult add_page(const struct cuda_driver *d)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct page *p = calloc(1, sizeof(*p));
	size_t bytes = 2 * PAGE_SLOTS * sizeof(uint32_t);
	CUdeviceptr at = 0;
	void *mem = NULL;
	CUresult r;

	if (!p)
		return OUT_OF_MEMORY;
	d->ThreadExchangeStreamCaptureMode(&mode);
	r = pin(d, bytes, &mem, &at);
	d->ThreadExchangeStreamCaptureMode(&mode);
	if (r != CUDA_SUCCESS) {
		free(p);
		return r;
	}
	p->words = mem;
	for (size_t i = 0; i < 2 * PAGE_SLOTS; i++)
		atomic_init(&p->words[i], 0);
	for (uint32_t i = 0; i < PAGE_SLOTS; i++) {
		struct cuda_slot *slot = &p->slots[i];

		slot->state = &p->words[i];
		slot->release = &p->words[PAGE_SLOTS + i];
		slot->state_at = at + i * sizeof(uint32_t);
		slot->release_at = at + (PAGE_SLOTS + i) * sizeof(uint32_t);
	}
	p->next = atomic_load_explicit(&g.pages, memory_order_relaxed);
	/* release: pairs with the progress thread's look */
	atomic_store_explicit(&g.pages, p, memory_order_release);
	return CUDA_SUCCESS;
}

/* Under the lock: a slot that was given back, else the lowest that was never used. */
static struct cuda_slot *take_slot(void)
{
	struct page *p = atomic_load_explicit(&g.pages, memory_order_relaxed);
	struct cuda_slot *slot = g.free;
	uint32_t n;

	if (slot) {
		g.free = slot->next_free;
		return slot;
	}
	n = p ? atomic_load_explicit(&p->n_used, memory_order_relaxed) : PAGE_SLOTS;
	if (n == PAGE_SLOTS)
		return NULL;
	atomic_store_explicit(&p->n_used, n + 1, memory_order_release);
	return &p->slots[n];
}

/* Gives @gate or @stamp words in *@slot, once; later calls do nothing. */
static CUresult prepare(const struct cuda_driver *d, struct cuda_slot **slot, struct gate *gate,
			struct stamp *stamp)
{
	CUresult r = CUDA_SUCCESS;

	if (*slot)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&g.lock);
	*slot = take_slot();
	if (!*slot) {
		r = add_page(d);
		*slot = r == CUDA_SUCCESS ? take_slot() : NULL;
	}
	pthread_mutex_unlock(&g.lock);
	if (*slot) {
		(*slot)->gate = gate;
		(*slot)->stamp = stamp;
	}
	return r;
}

static void give_back(struct cuda_slot **slot)
{
	if (!*slot)
		return;
	pthread_mutex_lock(&g.lock);
	(*slot)->next_free = g.free;
	g.free = *slot;
	pthread_mutex_unlock(&g.lock);
	*slot = NULL;
}

void cuda_gate_deinit(struct gate *gate)
{
	give_back(&gate->slot);
}

void cuda_stamp_deinit(struct stamp *st)
{
	give_back(&st->slot);
}

/* --- what goes into streams ------------------------------------------------------- */

static void set_write(CUstreamBatchMemOpParams *op, CUdeviceptr at, uint32_t value)
{
	*op = (CUstreamBatchMemOpParams){.pad = {0}};
	op->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op->writeValue.address = at;
	op->writeValue.value = value;
	op->writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
}

static void set_wait(CUstreamBatchMemOpParams *op, CUdeviceptr at, uint32_t value)
{
	*op = (CUstreamBatchMemOpParams){.pad = {0}};
	op->waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op->waitValue.address = at;
	op->waitValue.value = value;
	op->waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
}

CUresult cuda_gate_arrive(const struct cuda_driver *d, CUstream s, struct gate *gate)
{
	CUstreamBatchMemOpParams op;
	CUresult r = prepare(d, &gate->slot, gate, NULL);
	_Atomic uint32_t *count = gate->is_captured ? &g.n_captured : &g.n_pending;

	if (r != CUDA_SUCCESS)
		return r;
	set_write(&op, gate->slot->state_at, STATE_ARRIVED);
	/* seq_cst, before the stream can get there: cuda_gate_nap_ns() */
	atomic_fetch_add(count, 1);
	r = d->StreamBatchMemOp(s, 1, &op, 0);
	if (r != CUDA_SUCCESS)
		atomic_fetch_sub(count, 1);
	return r;
}

CUresult cuda_gate_stamp(const struct cuda_driver *d, CUstream s, struct stamp *st,
			 bool is_captured)
{
	CUstreamBatchMemOpParams op;
	CUresult r = prepare(d, &st->slot, NULL, st);
	_Atomic uint32_t *count = is_captured ? &g.n_captured : &g.n_pending;

	if (r != CUDA_SUCCESS)
		return r;
	set_write(&op, st->slot->state_at, STATE_ARRIVED);
	st->slot->is_captured = is_captured;
	atomic_fetch_add(count, 1); /* seq_cst: as in cuda_gate_arrive() */
	r = d->StreamBatchMemOp(s, 1, &op, 0);
	if (r != CUDA_SUCCESS)
		atomic_fetch_sub(count, 1);
	return r;
}

CUresult cuda_gate_wait(const struct cuda_driver *d, CUstream s, struct gate *gate,
			CUresult (*hold)(void *ctx, CUstream s, CUdeviceptr release), void *ctx)
{
	CUdeviceptr state = gate->slot->state_at, release = gate->slot->release_at;
	CUstreamBatchMemOpParams ops[4];
	CUresult r;

	set_write(&ops[0], state, STATE_DONE);
	set_wait(&ops[1], release, 1);
	set_write(&ops[2], state, STATE_IDLE); /* before @release: see cuda-gate.h */
	set_write(&ops[3], release, 0);
	if (!hold)
		return d->StreamBatchMemOp(s, 4, ops, 0);
	r = d->StreamBatchMemOp(s, 1, ops, 0);
	if (r == CUDA_SUCCESS)
		r = hold(ctx, s, release);
	return r == CUDA_SUCCESS ? d->StreamBatchMemOp(s, 3, ops + 1, 0) : r;
}

/* --- the progress thread -------------------------------------------------------------- */

void cuda_gate_release(struct gate *gate)
{
	struct cuda_slot *slot = gate->slot;

	slot->phase = PHASE_RELEASED;
	/* release: pairs with the device's wait; the device reads nothing else of the host */
	atomic_store_explicit(slot->release, 1, memory_order_release);
}

/* The time is taken after the word was seen: an op never starts before its arrival. */
static void arrive_one(struct cuda_slot *slot)
{
	struct gate *gate = slot->gate;

	slot->phase = PHASE_ARRIVED;
	slot->is_done = false;
	slot->next_going = g.going;
	g.going = slot;
	gate->times[gate->passed & 1].arrive_ns = clock_now_ns();
	if (gate->is_captured) /* others were counted when they were enqueued */
		atomic_fetch_add(&g.n_pending, 1);
	slot->next_arrived = NULL;
	*g.last_arrived = slot;
	g.last_arrived = &slot->next_arrived;
}

/* The gate just before @slot in its group, where it has arrived and is not noted yet; else NULL. */
static struct cuda_slot *arrived_before(const struct cuda_slot *slot)
{
	struct cuda_slot *before = slot->gate->before ? slot->gate->before->slot : NULL;

	/* acquire: the stream wrote it first, so that it is there */
	return before && before->phase == PHASE_IDLE &&
			       atomic_load_explicit(before->state, memory_order_acquire)
		       ? before
		       : NULL;
}

/* A group makes several ops of one communicator arrive on one stream, and a look may find them in
 * any order. The ops' numbers are their order on the stream. No recursion: there may be many
 * thousands. */
static void arrive(struct cuda_slot *slot)
{
	struct cuda_slot *first = NULL;

	for (; slot; slot = arrived_before(slot)) {
		slot->next_going = first; /* a slot that is idle does not use it */
		first = slot;
	}
	while ((slot = first)) {
		first = slot->next_going;
		arrive_one(slot);
	}
}

/* Return: whether it moved; @ret_passed: the stream has gone on. */
static bool look(struct cuda_slot *slot, bool *ret_passed)
{
	struct gate *gate = slot->gate;

	/* acquire, here and below: the device's writes in its order */
	*ret_passed = slot->phase == PHASE_RELEASED &&
		      !atomic_load_explicit(slot->release, memory_order_acquire);
	if (!slot->is_done &&
	    (*ret_passed ||
	     atomic_load_explicit(slot->state, memory_order_acquire) != STATE_ARRIVED)) {
		slot->is_done = true;
		gate->times[gate->passed & 1].local_done_ns = clock_now_ns();
		return true;
	}
	return *ret_passed;
}

/* The gates that are between arrive and passed. */
static bool poll_going(void)
{
	bool moved = false, has_passed;

	for (struct cuda_slot **p = &g.going, *slot; (slot = *p);) {
		struct gate *gate = slot->gate;

		moved = look(slot, &has_passed) || moved;
		if (!has_passed) {
			p = &slot->next_going;
			continue;
		}
		*p = slot->next_going;
		slot->phase = PHASE_IDLE;
		gate->times[gate->passed++ & 1].opened_ns = clock_now_ns();
		atomic_fetch_sub(&g.n_pending, 1);
		gate->on_passed(gate);
	}
	return moved;
}

/* Is any of the words of a line not 0? */
static bool line_is_set(_Atomic uint32_t *words)
{
	_Atomic uint64_t *pairs = (_Atomic uint64_t *)(uintptr_t)words;
	uint64_t any = 0;

	for (unsigned int i = 0; i < LINE_WORDS / 2; i++)
		any |= atomic_load_explicit(&pairs[i], memory_order_relaxed);
	return any != 0;
}

/* The host is the one that clears a stamp's word. A replay that writes it before that is not seen:
 * the stamp of a place in a graph is followed by a gate, which holds the replay. */
static void stamp_one(struct cuda_slot *slot)
{
	struct stamp *st = slot->stamp;

	atomic_store_explicit(&st->time_ns, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(slot->state, STATE_IDLE, memory_order_relaxed);
	if (!slot->is_captured)
		atomic_fetch_sub(&g.n_pending, 1);
	st->on_stamped(st);
}

enum what { ALL, STAMPS };

static bool poll_page(struct page *p, enum what what)
{
	uint32_t n = atomic_load_explicit(&p->n_used, memory_order_acquire);
	bool moved = false;

	for (uint32_t i = 0; i < n; i += LINE_WORDS) {
		if (!line_is_set(&p->words[i]))
			continue;
		for (uint32_t j = i; j < n && j < i + LINE_WORDS; j++) {
			struct cuda_slot *slot = &p->slots[j];

			if (slot->phase != PHASE_IDLE ||
			    !atomic_load_explicit(slot->state, memory_order_acquire) ||
			    (what == STAMPS && !slot->stamp))
				continue;
			if (slot->stamp) {
				poll_going(); /* what it stood behind has passed by now */
				stamp_one(slot);
			} else {
				arrive(slot);
			}
			moved = true;
		}
	}
	return moved;
}

static bool poll_pages(enum what what)
{
	bool moved = false;

	for (struct page *p = atomic_load_explicit(&g.pages, memory_order_acquire); p; p = p->next)
		moved = poll_page(p, what) || moved;
	return moved;
}

/* Before an arrival is noted, all that its stream came after is: stamps that were written while
 * this look had passed their words already, and ops that have passed. The time between a pass and
 * an arrival is the job's computing. The owner of a gate that has passed takes it back when the
 * notes run, after this look. By then all arrivals of its group are noted, and none of them names
 * it any more (gate->before). */
bool cuda_gate_poll(void)
{
	bool moved = poll_going();

	g.arrived = NULL;
	g.last_arrived = &g.arrived;
	moved = poll_pages(ALL) || moved;
	if (g.arrived) {
		poll_pages(STAMPS);
		poll_going();
	}
	for (struct cuda_slot *slot = g.arrived; slot; slot = slot->next_arrived)
		slot->gate->on_arrive(slot->gate);
	return moved;
}

uint64_t cuda_gate_nap_ns(uint64_t quiet_ns)
{
	uint64_t nap = quiet_ns / NAP_SHARE, most = UINT64_MAX;

	if (atomic_load(&g.n_pending))
		most = NAP_BUSY_NS;
	else if (atomic_load(&g.n_captured))
		most = NAP_IDLE_NS;
	else
		return UINT64_MAX;
	if (nap < NAP_MIN_NS)
		return 0;
	return nap < most ? nap : most;
}

void cuda_gate_open_all(void)
{
	for (struct page *p = atomic_load_explicit(&g.pages, memory_order_acquire); p; p = p->next)
		for (uint32_t i = 0; i < PAGE_SLOTS; i++)
			atomic_store_explicit(p->slots[i].release, 1, memory_order_release);
}
