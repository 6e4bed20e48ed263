/* The node that the programs of Lin et al. ask about. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "config/config.h"

/* Four GPUs, all real; @id and @text: of its network. */
static inline struct config *four_gpus(enum option_id id, const char *text)
{
	const struct {
		enum option_id id;
		const char *text;
	} words[] = {{CONFIG_NODES, "1"},
		     {CONFIG_GPUS_PER_NODE, "4"},
		     {CONFIG_REAL, "0-3"},
		     {id, text}};
	struct config *c;
	struct err err;

	if (config_new(&c) < 0)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (config_set(c, words[i].id, SOURCE_FLAG, words[i].text) < 0)
			abort();
	if (config_finish(c, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return c;
}
