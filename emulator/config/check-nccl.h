/* Whose messages ops have: nbox's schedules (gate), or NCCL's own (full), and what goes with the
 * latter. */
#pragma once

#include "config/config.h"

/* Sets nccl, exchange and traffic; before what asks exchange. Return: 0; -EINVAL with the sentence;
 * -ENOMEM. */
int check_exchange(struct config *c, struct err *err);
/* After all else: what nccl full cannot have; sets net_devices. Not of a former run, which is not
 * run again. Return: as above. */
int check_full(struct config *c, struct err *err);
