/* See command.h. */
#include "command.h"

#include <string.h>

#include "event.h"
#include "graph.h"
#include "launch.h"
#include "mark.h"
#include "memop.h"
#include "memory.h"
#include "runtime.h"
#include "stream.h"

static void run_host(const struct command *command)
{
	runtime_callback_begin();
	if (command->kind == COMMAND_HOST)
		command->host.fn(command->host.arg);
	else
		command->callback.fn(command->callback.stream, cudaSuccess, command->callback.arg);
	runtime_callback_end();
}

static void run_copy(const struct command *command)
{
	const char *src = command->copy.src;
	char *dst = command->copy.dst;

	/* Nothing to copy may come with NULL. */
	for (size_t y = 0; command->copy.width && y < command->copy.height; y++) {
		memmove(dst, src, command->copy.width);
		dst += command->copy.dpitch;
		src += command->copy.spitch;
	}
}

static void run_fill(const struct command *command)
{
	char *dst = command->fill.dst;

	for (size_t y = 0; command->fill.width && y < command->fill.height; y++) {
		memset(dst, command->fill.value, command->fill.width);
		dst += command->fill.pitch;
	}
}

void command_run(const struct command *command)
{
	switch (command->kind) {
	case COMMAND_EMPTY:
	case COMMAND_RECORD:
	case COMMAND_FOLLOW:
		break;
	case COMMAND_HOST:
	case COMMAND_CALLBACK:
		run_host(command);
		break;
	case COMMAND_KERNEL:
		launch_sleep(command->kernel_ns);
		break;
	case COMMAND_COPY:
		run_copy(command);
		break;
	case COMMAND_FILL:
		run_fill(command);
		break;
	case COMMAND_PASS:
		mark_pass(command->mark);
		break;
	case COMMAND_WAIT:
		mark_wait(command->mark);
		break;
	case COMMAND_JOIN:
		stream_wait(command->join.stream, command->join.n_done);
		break;
	case COMMAND_WRITE:
		memop_write(command);
		break;
	case COMMAND_AWAIT:
		memop_await(command);
		break;
	case COMMAND_FREE:
		memory_release(command->ptr);
		break;
	case COMMAND_LAUNCH:
	case COMMAND_LANE:
		launch_run(command->launch.launch, command->launch.lane);
		break;
	}
}

void command_deinit(struct command *command)
{
	switch (command->kind) {
	case COMMAND_PASS:
	case COMMAND_WAIT:
		mark_unref(command->mark);
		break;
	case COMMAND_JOIN:
		stream_unref(command->join.stream);
		break;
	case COMMAND_LAUNCH:
	case COMMAND_LANE:
		launch_unref(command->launch.launch);
		break;
	case COMMAND_RECORD:
	case COMMAND_FOLLOW:
		object_unref(&command->event->object);
		break;
	case COMMAND_EMPTY:
	case COMMAND_HOST:
	case COMMAND_CALLBACK:
	case COMMAND_KERNEL:
	case COMMAND_COPY:
	case COMMAND_FILL:
	case COMMAND_WRITE:
	case COMMAND_AWAIT:
	case COMMAND_FREE:
		break;
	}
	command->kind = COMMAND_EMPTY;
}

void command_copy(const struct command *from, struct command *to)
{
	*to = *from;
	to->next = NULL;
	if (from->kind == COMMAND_RECORD || from->kind == COMMAND_FOLLOW)
		object_ref(&from->event->object);
}
