/* Strict numbers with units: the whole string or an error. A bare number where
 * a unit belongs is an error that lists the units.
 *
 *   time       ns us ms s, and the micro sign  "1.5us"      -> double ns
 *   bytes      B K M G T, KiB .. TiB (binary), KB .. TB (decimal)   "4M"
 *   bandwidth  bps b/s bit/s (bits) or B/s Bps (bytes); before it perhaps K M G T
 *              (decimal) or Ki Mi Gi Ti (binary)         "400Gbps"    -> double bytes/ns
 *   ratio      a bare number, or "150%"        "1.5"
 *   count      decimal digits only             "1024"
 *   ranks      "0", "0-7", "0,5,9-12", "0+5+9-12" (what-ifs, where a comma ends the value)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* All return 0, or -EINVAL with the sentence in @err. They write the result only on success. */
int units_time(const char *text, double *ret_ns, struct err *err);
int units_bytes(const char *text, uint64_t *ret_bytes, struct err *err);
int units_bandwidth(const char *text, double *ret_bytes_per_ns, struct err *err);
/* "25Gbps" or "25Gbps,5us", as all --nic are; without a latency *ret_latency_ns stays as it is. */
int units_nic(const char *text, double *ret_bytes_per_ns, double *ret_latency_ns, struct err *err);
int units_ratio(const char *text, double *ret, struct err *err);
int units_count(const char *text, uint64_t *ret, struct err *err);
/* Sorted; a rank that is named twice is an error. *ret_ranks is the caller's to free(). Also
 * -ERANGE when a rank is not below @world, -ENOMEM. */
int units_ranks(const char *text, uint32_t world, uint32_t **ret_ranks, size_t *ret_n,
		struct err *err);
/* The same for other numbers below @n: @what is "node", "rail". */
int units_numbers(const char *text, const char *what, uint32_t n, uint32_t **ret, size_t *ret_n,
		  struct err *err);

/* "1.50 ms", "4 MiB": for people. Return: @buf. */
char *units_print_time(double ns, char *buf, size_t size);
char *units_print_bytes(uint64_t bytes, char *buf, size_t size);
