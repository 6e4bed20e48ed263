/* The sends and receives of a job in its graph. */
#pragma once

#include "nbox/replay/maker.h"

/* @n_owned: maker_own()'s. Return: 0; negative errno, -ENOMEM perhaps without the sentence. */
int add_messages(struct maker *m, uint32_t *n_owned);
