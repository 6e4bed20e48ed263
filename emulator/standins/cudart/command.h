/* Commands: what a stream's queue and a graph's nodes hold. A command owns the references in it;
 * running it leaves them, command_deinit() drops them, so that a graph's command can run again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

struct event;
struct launch;
struct mark;
struct stream;

struct command;

/* What a command is. The file that knows how to run it has its table. */
struct command_type {
	void (*run)(const struct command *command); /* blocks as long as it takes; NULL: nothing */
	void (*drop)(struct command *command);      /* the references that it owns; NULL: none */
	void (*copied)(const struct command *command); /* takes the copy's references; NULL: none */
	bool is_capturable;                            /* it can be a node of a graph */
	enum cudaGraphNodeType node;
};

extern const struct command_type command_empty;
extern const struct command_type command_host; /* a program's function */

struct command {
	struct command *next; /* the queue's */
	const struct command_type *type;
	uint64_t queued_ns; /* CLOCK_MONOTONIC; 0: the queue's */
	uint64_t takes_ns;  /* on a GPU; 0: as long as it takes here */
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
			size_t n;
			char bytes[32];
		} small; /* a copy's source, taken along */
		struct {
			void *dst;
			size_t pitch, width, height;
			int value;
		} fill;
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

/* What @command does is done: holds the stream for as long as it takes (pace.h). */
void command_take_time(const struct command *command);

/* Drops the references that @command owns. */
void command_deinit(struct command *command);

/* Copies @from to @to with references of its own. For commands that can be in a graph. */
void command_copy(const struct command *from, struct command *to);
