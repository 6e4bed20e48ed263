/* The declared layout of a job: the axes of parallelism along which its ranks are arranged, such as
 * tp=8,pp=4,dp=16. The first axis varies fastest from rank to rank, unless order= says otherwise. A
 * group of the job is one axis or several. A model with experts has two layouts of the same world.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "members/radix.h"

#define LAYOUT_AXES_MAX RADIX_LEVELS
#define LAYOUT_NAME_MAX 16
#define LAYOUT_TEXT_MAX 256

struct layout {
	uint32_t n_axes;
	struct layout_axis {
		char name[LAYOUT_NAME_MAX];
		uint32_t size, stride;
	} axis[LAYOUT_AXES_MAX]; /* fastest first */
};

/**
 * layout_parse - "tp=8,pp=4,dp=16", or "dp=16,tp=8,pp=4,order=tp-pp-dp"
 *
 * The product of the sizes must be @world.
 * Return: 0; -EINVAL with the sentence. Fuzzed.
 */
int layout_parse(const char *text, uint32_t world, struct layout *ret, struct err *err);
/* The layout of @text in a world of @world ranks: its data-parallel axis (dp, fsdp, ...; the
 * slowest of several) grows or shrinks, the others stay. @ret: LAYOUT_TEXT_MAX bytes. Return: 0;
 * -EINVAL with the sentence: it has none, or the others do not divide the world. */
int layout_grow(const char *text, uint32_t world, char *ret, struct err *err);
bool layout_is_data_parallel(const char *axis); /* its ranks compute alike, whatever their number */
/* The group along @axes (bit i: axis i) that @world_rank is in. */
void layout_group(const struct layout *l, uint32_t axes, uint32_t world_rank, struct radix *ret);
/* "dp", "tp+pp". Return: @buf. */
char *layout_axes_name(const struct layout *l, uint32_t axes, char *buf, size_t size);
