/* The command line of stepper. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OPTIONS_MAX_SLOW 16

struct options { /* texts are borrowed from the command line; NULL: not given */
	const char *job, *json, *id_file, *jitter;
	const char *slow[OPTIONS_MAX_SLOW];
	size_t n_slow;
	uint32_t iterations, warmup;
	bool is_graph;
	uint64_t seed;
};

extern const char options_usage[];

/* Return: 0; OPTIONS_HELP the help is wanted; -EINVAL with the sentence. */
enum { OPTIONS_HELP = 1 };
int options_take(int argc, char *const argv[], struct options *ret, struct err *err);
