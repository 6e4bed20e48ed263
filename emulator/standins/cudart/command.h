/* Commands: what a stream's queue and a graph's nodes hold. A command owns the references in it;
 * running it leaves them, command_deinit() drops them, so that a graph's command can run again. */
#pragma once

#include <stdint.h>

#include <cuda_runtime_api.h>

struct event;
struct exec;
struct launch;
struct mark;
struct stream;

enum command_kind {
	COMMAND_EMPTY,
	COMMAND_HOST,     /* a program's function */
	COMMAND_CALLBACK, /* the same with cudaStreamAddCallback's arguments */
	COMMAND_KERNEL,   /* takes its time, does nothing */
	COMMAND_COPY,
	COMMAND_FILL,
	COMMAND_PASS,   /* passes a mark */
	COMMAND_WAIT,   /* waits for a mark */
	COMMAND_JOIN,   /* waits until another stream has run its first n commands */
	COMMAND_WRITE,  /* writes a word and wakes those who wait on it */
	COMMAND_AWAIT,  /* waits until a word compares */
	COMMAND_FREE,   /* memory of cudaFreeAsync */
	COMMAND_LAUNCH, /* one launch of a graph: its first lane, then its end */
	COMMAND_LANE,   /* another lane of a launch, in a stream of the graph's own */
	COMMAND_RECORD, /* in graphs only: records an event; becomes COMMAND_PASS at launch */
	COMMAND_FOLLOW, /* in graphs only: waits for an event; becomes COMMAND_WAIT at launch */
};

struct command {
	struct command *next; /* the queue's */
	enum command_kind kind;
	union {
		struct {
			cudaHostFn_t fn;
			void *arg;
		} host;
		struct {
			cudaStreamCallback_t fn;
			cudaStream_t stream;
			void *arg;
		} callback;
		struct {
			void *dst;
			const void *src;
			size_t dpitch, spitch, width, height;
		} copy;
		struct {
			void *dst;
			size_t pitch, width, height;
			int value;
		} fill;
		uint64_t kernel_ns; /* how long it takes */
		struct {
			void *addr;
			uint64_t value;
			unsigned bytes; /* 4 or 8 */
			unsigned flags; /* CU_STREAM_WAIT_VALUE_... */
		} word;
		struct {
			struct stream *stream; /* owned */
			uint64_t n_done;
		} join;
		struct {
			struct launch *launch; /* owned */
			unsigned lane;
		} launch;
		struct mark *mark;   /* owned */
		struct event *event; /* owned */
		void *ptr;
	};
};

/* Runs @command on the calling thread; blocks as long as it takes. */
void command_run(const struct command *command);

/* Drops the references that @command owns. */
void command_deinit(struct command *command);

/* Copies @from to @to with references of its own. For commands that can be in a graph. */
void command_copy(const struct command *from, struct command *to);
