/* Stream memory operations: words that streams write and wait for. */
#pragma once

struct command;

/* Run COMMAND_WRITE and COMMAND_AWAIT. */
void memop_write(const struct command *command);
void memop_await(const struct command *command);
