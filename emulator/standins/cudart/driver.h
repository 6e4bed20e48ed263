/* The driver API's functions by name. */
#pragma once

#include <cuda.h>

/* Return: the function that @name, which may leave out a version suffix, stands for; NULL when
 * there is none. @ret_since: the CUDA version that brought its name; 0 of those that only refuse.
 */
void (*driver_find(const char *name, unsigned int *ret_since))(void);
