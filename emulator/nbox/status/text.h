/* nboxd's answer to `nbox status`, for people. */
#pragma once

#include <stdio.h>

#include "base/err.h"

/* @json: what nboxd answered; another host may have sent it, so that nothing in it reaches the
 * terminal but text. Return: 0; -EPROTO with the sentence. */
int status_print(const char *json, FILE *to, struct err *err);
