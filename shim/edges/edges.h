/* The edges between the job's streams: which op waits for which place of which stream, and which
 * stream waits for which op. Learned from the job's calls (interpose.c) and from ops (enqueue.c).
 *
 * A place in a stream is stamped when the device gets there, by a stream of ours that waits for the
 * event that marks the place: a communication stream that is busy does not delay the stamp. The
 * event is the job's; before a wait for an op, where the job has recorded none, and before a
 * launch, it is one of ours: outside of captures all that the job's compute streams get. In a
 * capture our stream becomes part of the capture, and CUDA ends none that has streams which are not
 * joined. So the stream that waits for the event waits for the stamp, too: the only way that CUDA
 * documents.
 *
 * The launch of a graph that has ops is a place, too, just before it. All that was captured comes
 * after the launch, and what the graph ends with lies behind what follows on that stream. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "shim/edges/behind.h"
#include "shim/gate/device.h"
#include "wire/wire.h"

/* A point on its way to nboxd. Its stamp, if it has one, is enqueued after made(). */
struct edges_point {
	struct wire_point m; /* time_ns: of a point of the host; a place's is in @stamp */
	struct wire_dep deps[BEHIND_MAX];
	int device;
	uint32_t launch; /* of a graph: which, from 1, of those with this name; 0: it is none */
	struct stamp stamp;
};

/* Whom points are given to; any thread. */
struct edges_sink {
	struct edges_point *(*make)(void); /* zeroed, but for on_stamped; NULL: no memory */
	void (*made)(struct edges_point *p);
};

/* From now on calls are looked at. Any thread; later calls do nothing. */
void edges_open(const struct device *dev, const struct edges_sink *sink);
/* In the child of a fork: they are not looked at any more. */
void edges_in_child(void);

/* --- for ops ------------------------------------------------------------------------------ */

/* Ops that are enqueued together on one stream. */
struct edges_ops {
	uint64_t call_ns, work_ns, host, at, capture;
	uint32_t stream, n_deps;
	struct wire_dep deps[BEHIND_MAX];
};

/* The calling thread enqueues ops. Return: their place, for edges_ops() and edges_ops_end(). */
uint64_t edges_place(void);
void edges_ops(device_stream s, uint64_t at, uint64_t call_ns, struct edges_ops *ret);
uint64_t edges_name(const struct edges_ops *ops);
/* The last of them has @name: from here on it lies behind the stream. */
void edges_ops_end(device_stream s, const struct edges_ops *ops, uint64_t name, struct edge *ret);
/* @s waits for all that @other has behind it. */
void edges_join(device_stream s, device_stream other);
/* @s waits for the op @e. */
void edges_follow(device_stream s, const struct edge *e);
/* Many ops were enqueued, and none of the job's calls came by: it has a CUDA runtime that cannot be
 * interposed. */
bool edges_are_blind(void);

/* --- the calling thread ------------------------------------------------------------------- */

/* A word of the thread's that costs no call: libnbox.so is there when the process starts. */
#define EDGES_THREAD _Thread_local __attribute__((tls_model("initial-exec")))
/* More than 0: CUDA calls are nbox's or NCCL's own. */
extern EDGES_THREAD unsigned int edges_quiet;

static inline void edges_speak(const unsigned int *quiet)
{
	(void)quiet;
	edges_quiet--;
}
#define EDGES_QUIET() \
	__attribute__((unused)) const unsigned int quiet_ CLEANUP(edges_speak) = ++edges_quiet

/* --- for interpose.c: calls of the job that succeeded ------------------------------------- */

/* Is this a call of the job that counts? Quiet until edges_end(). */
bool edges_begin(uint64_t *ret_call_ns);
void edges_end(void);
/* The job gives @s work: a kernel, a copy, a function. No edges_begin(). */
void edges_worked(device_stream s);
void edges_recorded(device_event ev, device_stream s, uint64_t call_ns);
/* Before the call. */
void edges_waits(device_stream s, device_event ev, uint64_t call_ns);
void edges_waited(device_stream s, device_event ev);
void edges_event_synced(device_event ev, uint64_t call_ns);
void edges_stream_synced(device_stream s, uint64_t call_ns);
void edges_device_synced(uint64_t call_ns);
/* The capture that @s is in, before the call that ends it, and what graph that has made. */
uint64_t edges_capture(device_stream s);
void edges_captured(device_stream s, uint64_t capture, const void *graph);
/* @to, a graph or an executable one, does what @from does. */
void edges_graph_copied(const void *to, const void *from);
/* Before the call. */
void edges_launches(const void *exec, device_stream s, uint64_t call_ns);
void edges_forget_graph(const void *graph);
void edges_forget_event(device_event ev);
void edges_forget_stream(device_stream s);
