/* Classes of ranks: those of one compute the same, others something else. A class is a place along
 * some axes of a layout, such as a stage of a pipeline, on nodes with one kind of GPU. A virtual
 * rank does what a real one of its class does (topology/template.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fabric/fabric.h"
#include "members/layout.h"

struct classes {
	uint32_t n;   /* 1: all ranks are alike */
	uint32_t *of; /* owned; by world rank: a number from 0; NULL: n is 1 */
	struct layout layout;
	uint32_t axes; /* bits: of @layout */
	bool has_gpus; /* nodes differ in theirs */
};

/**
 * classes_make - @axes: of one of @layouts, joined by '+'; "none"; NULL: pp, where that is declared
 * @f: NULL: there is none
 *
 * Return: 0; -EINVAL with the sentence: no such axis; -ENOMEM.
 */
int classes_make(const char *axes, const struct layout *layouts, size_t n_layouts,
		 const struct fabric *f, uint32_t world, uint32_t gpus_per_node,
		 struct classes *ret, struct err *err);
void classes_deinit(struct classes *c);
/* The class of @world_rank, on nodes of @gpu (NULL: of no fabric): "pp=2", "pp=2 ep=1", "pp=2
 * H100". Return: @buf. */
char *classes_name(const struct classes *c, uint32_t world_rank, const char *gpu, char *buf,
		   size_t size);
