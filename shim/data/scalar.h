/* Numbers in NCCL's data types: scalars for PreMulSum, powers for products. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/real/nccl-api.h"

/* Writes @value in @dtype (at most 8 bytes), rounded to nearest even; integers
 * modulo their width; too large for a float type: its largest or infinity. */
void scalar_store(ncclDataType_t dtype, double value, void *ret);
/* @value times a count, in @dtype's own arithmetic. */
void scalar_times(ncclDataType_t dtype, const void *value, uint32_t n, void *ret);
/* Each of the @count elements to the power @n, in place. */
void scalar_power(ncclDataType_t dtype, void *buf, size_t count, uint32_t n);
bool scalar_is_int(ncclDataType_t dtype);
/* The byte that policy fill writes: integers get 0, since they are counts more often than not;
 * floats a small value, 4.4e-5 in fp32 and bf16, 0.53 in fp16, 1 and 0.5 in fp8, 7e-38 in fp64. */
int scalar_fill_byte(ncclDataType_t dtype);
