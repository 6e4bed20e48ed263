/* The job's streams and events, and what lies behind each of them; the rules by which that grows.
 * Calls no device: edges.c does, and holds the lock. What is captured knows only what was captured
 * with it, and the launch of its graph: a stream has what lies behind it outside of captures back
 * when its capture ends. Each launch of a graph has the same name, as each replay of what was
 * captured. What follows a launch has behind it what the graph ends with. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/edges/behind.h"
#include "shim/gate/device.h"

#define TABLE_DEVICES 64 /* ranks in a process */

struct table_stream {
	struct table_stream *next;
	device_stream handle;
	int device;
	uintptr_t thread; /* of a per-thread default stream */
	uint32_t number;  /* from 1; never given twice */
	bool is_comm;     /* it has had an op */
	bool has_work;    /* since its last op, of other kinds */
	bool has_later;   /* since the last record: work of the job's */
	/* When it got the first work since its last point or op, or since the host saw that it had
	 * none; and since the last record. 0: none, or captured. */
	uint64_t work_ns, later_work_ns;
	uint8_t n_worked; /* 0: it has had nothing but ops for a while: see table_op() */
	bool is_blocking; /* it waits for the legacy stream of its device, and that for it */
	bool is_legacy;
	struct behind behind, eager; /* now; while captured: as it was before */
	uint64_t capture;
	struct table_event *last; /* the last record on it, the job's or edges.c's; NULL: no use */
	struct stamper *stamper;  /* edges.c's */
};

struct table_event {
	struct table_event *next;
	device_event handle;
	struct table_stream *stream; /* of its last record; NULL: destroyed */
	int device;                  /* that stream's */
	struct behind behind;
	uint64_t at, call_ns, work_ns, host, capture;
	bool is_point; /* the record has a name, which is all of @behind */
};

/* What was captured into one graph. Kept for good once it has ops, as they are; copies of the graph
 * share it. */
struct table_graph {
	struct table_graph *next;
	uint64_t capture;
	struct edge launch;  /* before all that was captured; a stream of its own */
	uint32_t n_launches; /* so far */
	struct behind end;   /* on its first stream: stream 0; else that of @launch */
};

/* A graph of the job's, or an executable one. */
struct table_handle {
	struct table_handle *next;
	const void *handle;
	struct table_graph *graph;
};

/* A point that has just got its name. */
struct table_point {
	uint64_t name, call_ns, work_ns, host;
	uint32_t launch; /* of a graph: which, from 1; 0: it is none */
	uint32_t stream; /* number; 0: the host */
	int device;
	struct behind behind;
	device_event event;
	uint64_t capture;
	struct stamper *stamper; /* of the stream */
};

struct table {
	struct table_stream *streams[64];
	struct table_event *events[4096];
	struct table_handle *handles[256];
	struct table_graph *graphs;
	uint64_t at, name;
	uint32_t n_streams;
	struct {
		uint64_t last; /* point of the host; 0: none yet */
		struct behind behind;
	} hosts[TABLE_DEVICES];
};

/* A new name. */
uint64_t table_name(struct table *t, uint64_t capture);
/* The stream, which may be new (number 0: it is the caller's to fill); NULL: no memory. */
struct table_stream *table_stream(struct table *t, device_stream s, int device, uintptr_t thread);
/* A call uses the stream: in capture @capture (0: none), and after what the legacy stream or,
 * on that, the blocking streams have behind them. */
void table_use(struct table *t, struct table_stream *s, uint64_t capture);
/* NULL: not known. */
struct table_event *table_event(struct table *t, device_event ev);

/* @s was given work by a call at @call_ns. */
void table_work(struct table_stream *s, uint64_t call_ns);
/* @ev was recorded on @s. */
void table_record(struct table *t, device_event ev, struct table_stream *s, uint64_t call_ns);
/* Before @s waits for @ev: is that a wait for an op, at a place that no record marks? */
bool table_lacks_place(const struct table_stream *s, const struct table_event *ev);
/* @s waits for @ev. Return: how many points are to be stamped, at most 2. */
unsigned int table_wait(struct table *t, struct table_stream *s, struct table_event *ev,
			struct table_point ret[2]);
/* @s gets ops. Not all work of the job's can be seen (a library may have a runtime of its own), and
 * some streams of ops have had other work once. So a stream counts as one that computes as long as
 * one in TABLE_WORKED ops has visible work before it. */
#define TABLE_WORKED 4
void table_op(struct table_stream *s);
/* Is it one with places that nothing but an event tells? */
bool table_computes(const struct table_stream *s);
/* The host has waited for @behind, and for what was computed since where it took time
 * (@has_waited). Return: whether that is a point: it did, or @behind was not known before. */
bool table_sync(struct table *t, int device, const struct behind *behind, bool has_waited,
		struct table_point *ret);
/* All that is on @device: the host has waited for it. */
void table_device(struct table *t, int device, struct behind *ret);
/* The host has seen that the stream has done all its work. */
void table_idle(struct table_stream *s);
/* Return: what the stream had of edges.c. */
struct stamper *table_forget_stream(struct table *t, struct table_stream *s);
void table_forget_event(struct table *t, device_event ev);

/* The capture @capture, which began on @s, has become the graph @handle. */
void table_captured(struct table *t, struct table_stream *s, uint64_t capture, const void *handle);
/* @to, a graph or an executable one, does what @from does; NULL: nothing that is known. */
void table_copy_graph(struct table *t, const void *to, const void *from);
/* What it does; NULL: no ops, or it is not known. */
struct table_graph *table_graph(struct table *t, const void *handle);
/* @graph is launched just behind the record of @ev. That is the point. */
void table_launch(struct table *t, struct table_event *ev, struct table_graph *graph,
		  struct table_point *ret);
