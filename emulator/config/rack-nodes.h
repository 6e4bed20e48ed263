/* rack=LEAVES of a what-if that names ranks: the nodes at these leaves of the fabric. */
#pragma once

#include "base/err.h"
#include "fabric/fabric.h"

/* Writes node= in the place of rack= into a copy of @text. @f NULL: there is no fabric. Return: 0,
 * *ret is the caller's to free(), or NULL where @text names no rack; negative errno with the
 * sentence. */
int rack_nodes(const char *text, const struct fabric *f, char **ret, struct err *err);
