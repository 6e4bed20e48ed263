/* The driver API's functions by name. */
#pragma once

#include <cuda.h>

/* Return: the function that @name, which may leave out a version suffix, stands for; NULL when
 * there is none. */
void (*driver_find(const char *name))(void);
