/* Checks of what models answer. Each is made on the answer's way up, so that the sentence, in the
 * chain's err, names the model that gave it. */
#pragma once

#include "engine/delay-host.h"

/* 31 years: longer answers are errors. So a sum of several answers still fits nboxd's clock (64
 * bits of nanoseconds), and no op can end before its start. */
#define DELAY_MAX_NS 1e18

/* A model returned -1: keeps its sentence, or says that it gave none. Return: -1. */
int delay_failed(const struct delay_instance *in, const char *what);
/* A return value other than 0, 1 and -1 is an error as well. Return: 0, 1, -1. */
int delay_check_return(const struct delay_instance *in, int r, const char *what);
/* Return: 0; -1. */
int delay_check_time(const struct delay_instance *in, double ns, bool may_shorten,
		     const char *what);
/* Turns a model's -1 into -EINVAL, with the chain's sentence in @err. */
int delay_answer(const struct delay_chain *d, int r, struct err *err);
