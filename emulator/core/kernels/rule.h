/* What a kernel may take on a card whose peaks are known: an estimate, no measurement.
 *
 *   a product of matrices   RULE_FLOOR_NS + max(flops / peak, bytes / bandwidth) / RULE_EFFICIENCY
 *   attention               RULE_FLOOR_NS + flops / peak / the card's part for attention
 *   any other kernel        RULE_FLOOR_NS + bytes / bandwidth / RULE_EFFICIENCY
 *
 * The bytes of a product are those of its three matrices, once. Attention is PyTorch's
 * FlashAttention 2: its name tells the width of a head, the block of the sequence that a row of the
 * grid has, and whether it is causal (half the flops); keys are taken to be as many as queries, so
 * that a sequence in blocks costs 2 products forward, 5 backward. Of any other kernel the runtime
 * knows name and threads, no sizes. A thread moves as many elements of each operand as one of
 * PyTorch's family of that name (rule.c), else 8 of two operands; an element has 2 bytes where
 * the name says BFloat16 or Half, else 4. So a kernel whose threads loop over their input
 * (reductions, softmax) is taken to be shorter than it is, and an optimiser's over many
 * small tensors to be longer. Two constants are assumptions and stand for all kernels: how near to
 * its peaks the card comes, and what the smallest kernel takes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/card.h"

#define RULE_EFFICIENCY 0.7
#define RULE_FLOOR_NS 2000.0

/* D (m x n) = A (m x k) times B (k x n), @batch times. */
struct kernel_product {
	enum kernel_type type;
	uint64_t m, n, k, batch;
};

double rule_product_ns(const struct card *card, const struct kernel_product *product);

/* What a product is called in a table: "matmul bf16 128x1536x384", with "x8" behind it for a batch
 * of 8. m and n stand in ascending order, since libraries exchange them at will. Return: @buf. */
char *kernel_product_name(const struct kernel_product *product, char *buf, size_t size);

/* Copies and fills are kernels, too: "memcpy HtoD", "memcpy DtoH", "memcpy DtoD", "memset" in a
 * table. By the rule: RULE_FLOOR_NS + bytes / bandwidth / RULE_EFFICIENCY, of the memory, where a
 * copy passes twice, or of the bus to the host. */
enum kernel_copy { COPY_HOST, COPY_TO_DEVICE, COPY_TO_HOST, COPY_DEVICE, COPY_FILL };

double rule_copy_ns(const struct card *card, enum kernel_copy kind, uint64_t bytes);
const char *kernel_copy_name(enum kernel_copy kind);

/* How long a kernel takes: fixed_ns + threads * thread_ns + x * x * y * z of its grid * square_ns.
 */
struct kernel_price {
	double fixed_ns, thread_ns, square_ns;
};

/* @name: as compiled code registers it. */
struct kernel_price rule_price(const struct card *card, const char *name);
