/* A regular group of ranks: base + d0 x stride0 + d1 x stride1 + ..., where digit i
 * counts from 0 to n_i - 1 and the first digit counts fastest. Groups of a parallel
 * job are of this form: one axis of its layout is one level, a product of axes that
 * are not neighbours is two.
 *
 * Levels rise: n_i x stride_i <= stride_(i+1), so ranks ascend and each has one
 * sequence of digits. Pure arithmetic, nothing is allocated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RADIX_LEVELS 8

struct radix {
	uint32_t base, n_levels;
	struct radix_level {
		uint32_t n, stride;
	} level[RADIX_LEVELS]; /* all with n > 1 */
};

/* Appends a level, or lengthens the last one where that says the same. @n 1 changes nothing.
 * Return: false when there is no room or the levels do not rise. */
bool radix_push(struct radix *r, uint32_t n, uint32_t stride);
uint32_t radix_size(const struct radix *r); /* product of all n */
/* The member number @rank; @rank below radix_size(). */
uint32_t radix_at(const struct radix *r, uint32_t rank);
/* Its inverse; -1: @value is no member. */
int64_t radix_find(const struct radix *r, uint32_t value);
bool radix_equal(const struct radix *a, const struct radix *b);
/* Moves @r to the group of its family that has @value; the groups of a family divide the ranks 0 to
 * world - 1. Return: the member number of @value. */
uint32_t radix_move(struct radix *r, uint32_t value);

/* Calls @each with every family of groups of @n_levels levels (1 to 3) that divides @world ranks
 * evenly; base 0. Strides and sizes are divisors of @world, as the axes of a layout have them.
 * @each returns false to stop. */
void radix_each(uint32_t world, uint32_t n_levels, bool (*each)(void *ctx, const struct radix *r),
		void *ctx);
