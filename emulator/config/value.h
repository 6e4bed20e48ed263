/* Shared by the files of config/, not for others. */
#pragma once

#include "config/config.h"

void value_clear(struct config_value *v);
/* Return: 0; -ENOMEM. */
int value_add(struct config_value *v, enum config_source source, const char *text,
	      unsigned line, unsigned column);
/* "; did you mean 'allreduce'?", spelled as in the help; "" when none of @names is near. Return: @buf. */
char *value_suggestion(const char *word, const char *const *names, size_t n, char *buf, size_t size);
bool option_is_list(enum config_id id);
