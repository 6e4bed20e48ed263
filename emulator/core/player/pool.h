/* Inside player/: staging memory, kept between ops. Thread-safe. */
#pragma once

#include <stddef.h>

#define POOL_ALIGN 64

/* At least @bytes (> 0), aligned, of any content; *ret_bytes is what pool_give()
 * must be told. NULL: no memory. */
void *pool_take(size_t bytes, size_t *ret_bytes);
void pool_give(void *memory, size_t bytes); /* NULL allowed */
