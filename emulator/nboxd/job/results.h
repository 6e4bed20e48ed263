/* The results directory of a run: record.nbox, config.yaml (effective),
 * versions.txt, host.json, and command.txt once a worker has come. What is there already (written
 * by `nbox run`) stays, but a record of another run is refused. */
#pragma once

#include "base/err.h"
#include "config/config.h"
#include "engine/record-write.h"

/* Return: 0; negative errno with the sentence. */
int results_open(const struct config *c, uint64_t start_ns, struct record_writer **ret,
		 struct err *err);
/* What ran, unless a file says it already: command.txt, one word a line, of the process @pid of
 * this host (the first worker: its ranks run the same). What cannot be read or written is left out.
 */
void results_note_command(const struct config *c, uint32_t pid);
/* A line of @name: notes.txt, aborts.txt (for the summary) or versions.txt. Return: 0; negative
 * errno. */
int results_append(const struct config *c, const char *name, const char *text);
