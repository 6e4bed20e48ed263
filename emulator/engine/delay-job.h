/* What a job told of itself when it joined. */
#pragma once

#include <stddef.h>

struct delay_job {
	/* The version of its NCCL ("": not known), then variables of its environment, NAME=VALUE;
	 * each text with its terminating zero. Borrowed, for the life of the chain or until the
	 * next. */
	const char *texts;
	size_t bytes;
};
