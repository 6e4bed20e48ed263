/* See command.h. */
#include "command.h"

#include "pace.h"
#include "runtime.h"

static void host_run(const struct command *command)
{
	runtime_callback_begin();
	command->host.fn(command->host.arg);
	runtime_callback_end();
	pace_not_before_now();
}

const struct command_type command_empty = {
	.is_capturable = true,
	.node = cudaGraphNodeTypeEmpty,
};

const struct command_type command_host = {
	.run = host_run,
	.is_capturable = true,
	.node = cudaGraphNodeTypeHost,
};

void command_run(const struct command *command)
{
	if (command->type->run)
		command->type->run(command);
}

void command_take_time(const struct command *command)
{
	pace_take(command->takes_ns, command->next && command->next->takes_ns);
}

void command_deinit(struct command *command)
{
	if (command->type->drop)
		command->type->drop(command);
	command->type = &command_empty;
}

void command_copy(const struct command *from, struct command *to)
{
	*to = *from;
	to->next = NULL;
	if (from->type->copied)
		from->type->copied(from);
}
