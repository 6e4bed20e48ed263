/* A file of a fitted model, read. */
#pragma once

#include "base/err.h"
#include "fitted/fitted-file.h"

/* Return: 0: *ret is the caller's, by fitted_deinit(); negative errno with the sentence. */
int fitted_load(const char *path, struct fitted *ret, struct err *err);
