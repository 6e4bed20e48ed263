/* Shared by the files of config/, not for others. */
#pragma once

#include "config/config.h"

void value_clear(struct config_value *v);
/* Return: 0; -ENOMEM. */
int value_add(struct config_value *v, enum config_source source, const char *text,
	      unsigned line, unsigned column);
bool option_is_list(enum config_id id);
