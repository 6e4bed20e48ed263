/* The device interface: what the shim needs of the library that owns the streams. The gate of an op
 * is *arrive* and *wait* on the op's stream, and *release* from the progress thread. There are two
 * devices, host and cuda; device-choose.h says which one a process gets.
 *
 * A gate is reusable: arrive and wait alternate strictly, as they do in one stream or in the
 * replays of one captured graph. */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct CUstream_st *device_stream;
typedef struct CUevent_st *device_event;
struct cuda_slot;

/* Order of accesses on the device host, also on machines that keep little of it (aarch64).
 * release() stores @due_ns and then adds to @releases, with release; the waiting stream loads
 * @releases with acquire and then @due_ns. No wake is lost: the kernel compares the word of a futex
 * under the lock that a wake takes, before it puts a thread to sleep. @passed and @times are plain:
 * the stream's thread writes them before on_arrive or on_passed, whose note reaches the progress
 * thread through a mutex. For the device cuda see cuda-gate.h. */
struct gate {
	/* Called on a thread of the device, or by poll(); must not block. */
	void (*on_arrive)(struct gate *g);
	void (*on_passed)(struct gate *g);
	bool is_captured;    /* set before arrive: a graph will replay it */
	struct gate *before; /* set before arrive: the gate of the same communicator and group that
				arrives just before on the same stream; NULL: none */
	uint32_t kind;       /* enum coll_kind of the op: names the footprint kernel */
	/* Releases so far: release() adds 1; the waiter compares with @passed. */
	_Atomic uint32_t releases;
	uint32_t passed;         /* passes so far; the device's */
	_Atomic uint64_t due_ns; /* written before @releases is (release/acquire) */
	_Atomic uint32_t hurry;  /* 1: the communicator is dead, do not wait for due_ns */
	struct cuda_slot *slot;  /* device cuda: its words; else NULL */
	/* Pass number n has [n & 1]. The device writes them; the progress thread reads them after
	 * on_arrive or on_passed handed them over. A replay may begin the next pass at once, but
	 * does not end it before the progress thread has seen it arrive. */
	struct gate_times {
		uint64_t arrive_ns, local_done_ns, opened_ns; /* own clock */
	} times[2];
};

/* A place in a stream, whose time is taken when the device gets there. Captured, it has one in each
 * replay. */
struct stamp {
	/* Called on a thread of the device, or by poll(); must not block. */
	void (*on_stamped)(struct stamp *st);
	/* Own clock; 0: not yet. Relaxed: who was told by on_stamped has it; others may see it
	 * early. */
	_Atomic uint64_t time_ns;
	struct cuda_slot *slot; /* device cuda: its word; else NULL */
};

struct device_shared {
	void *base;   /* aligned */
	void *memory; /* what it is inside of */
	int dmabuf_fd;
};

/* A thread in this mode may allocate while streams are captured; it is not captured. */
#define DEVICE_CAPTURE_RELAXED 2
#define DEVICE_NONE -1

struct device {
	const char *name;
	/* The waiter itself honours due_ns, so that release() may come before. Else
	 * the progress thread calls release() no sooner than due_ns. */
	bool waits_for_due;

	int (*open)(struct err *err); /* 0 or negative errno with the sentence; once */
	int (*get)(int *ret_device);  /* DEVICE_NONE: this thread has used none yet */
	int (*set)(int device);
	/* The PCI id as CUDA writes it: "0000:3B:00.0". Makes no context. 0; -ENOTSUP, -EIO. */
	int (*pci_id)(int device, char *ret, size_t size);
	/* About the last call on this thread that failed; "": nothing is known. */
	const char *(*why)(void);

	/* Enqueue. Return: 0 or -EIO. */
	int (*arrive)(device_stream s, struct gate *g);
	int (*wait)(device_stream s, struct gate *g);
	/* Opens the gate once; any thread, never blocks. @due_ns: 0 means now. */
	void (*release)(struct gate *g, uint64_t due_ns);
	/* NULL, or where waits_for_due: one that was released and has not passed yet is due then.
	 */
	void (*postpone)(struct gate *g, uint64_t due_ns);
	/* Something is wrong: a released gate opens now, whatever its due time. */
	void (*hurry)(struct gate *g);
	/* No stream holds the gate any more: gives back what it has of the device. */
	void (*gate_deinit)(struct gate *g);

	/* Enqueue. Return: 0 or -EIO. @is_captured: a graph will replay it. The stamp is the
	 * device's until on_stamped; of a graph: for good. */
	int (*stamp)(device_stream s, struct stamp *st, bool is_captured);
	/* No stream holds the stamp any more. */
	void (*stamp_deinit)(struct stamp *st);

	/* NULL, or: how the progress thread learns what gates do. Looks at all of them,
	 * calls on_arrive, on_passed and on_stamped; returns whether any moved. */
	bool (*poll)(void);
	/* How long poll() may wait when nothing has moved for @quiet_ns; UINT64_MAX: until
	 * something is enqueued (note_nudge()). */
	uint64_t (*nap_ns)(uint64_t quiet_ns);
	/* The progress thread ends: nobody will poll any more. */
	void (*stop)(void);

	/* Enqueue; 0 or -EIO. All can be captured. */
	int (*copy)(device_stream s, void *dst, const void *src, size_t bytes);
	int (*fill)(device_stream s, void *dst, int byte, size_t bytes);
	int (*call)(device_stream s, void (*fn)(void *arg), void *arg);

	/* Also during capture; 0 or -ENOMEM. Device memory; pinned memory of the host. Never freed:
	 * see scratch.h. */
	int (*alloc)(void **ret, size_t bytes);
	int (*alloc_host)(void **ret, size_t bytes);

	/* NULL, or: zeroed memory of device @ordinal that NICs may read and write. Makes that
	 * device the calling thread's, and waits for it. ret->dmabuf_fd: all of it as a dma-buf,
	 * the caller's to close; -1: the driver gives none. @align: a power of two. Return: 0;
	 * -ENOTSUP, -ENOMEM, -EIO with why(). free_shared() waits for the device, too. */
	int (*alloc_shared)(int ordinal, size_t bytes, size_t align, struct device_shared *ret);
	void (*free_shared)(const struct device_shared *m);

	/* A stream that the legacy stream does not wait for, also during a capture; 0 or -EIO. */
	int (*stream_new)(device_stream *ret);
	int (*stream_device)(device_stream s, int *ret); /* 0; -EIO, also before CUDA 12.8 */
	/* Does it wait for the legacy stream, and that for it? */
	bool (*is_blocking)(device_stream s);
	int (*event_new)(device_event *ret);
	void (*event_free)(device_event ev);
	int (*event_record)(device_event ev, device_stream s);
	int (*stream_wait)(device_stream s, device_event ev);

	/* The calling thread's stream capture mode: @mode in, the one before out. */
	void (*exchange_mode)(int *mode);
	/* 0: not capturing; else a number that is the same for all streams of one
	 * capture and differs between captures. */
	uint64_t (*capture_id)(device_stream s);
};

/* Selects @ordinal for the calling thread. A thread that is on this device already keeps its
 * context: that may be one of the job's own (a green context), while set() selects the primary one.
 * DEVICE_NONE: does nothing. Return: 0 or -EIO. */
static inline int device_select(const struct device *dev, int ordinal)
{
	int now = DEVICE_NONE;

	if (ordinal == DEVICE_NONE || (!dev->get(&now) && now == ordinal))
		return 0;
	return dev->set(ordinal);
}

/* Calls the function @fn of @owner's device. Uses @err of the function that it stands in. Return:
 * 0; -EIO with the sentence. */
#define DEVICE(owner, fn, args)                                                          \
	((owner)->dev->fn args                                                           \
		 ? err_set(err, EIO, "the device refused to enqueue work (" #fn "): %s", \
			   (owner)->dev->why())                                          \
		 : 0)
