/* Where nboxd listens: addresses, link, token and store. */
#pragma once

#include "config/config.h"

/* Return: 0; -EINVAL with the sentence; -ENOMEM. */
int check_addresses(struct config *c, struct err *err);
