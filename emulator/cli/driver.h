/* Whether NVIDIA's driver is here and shows a device. */
#pragma once

#include "base/err.h"

/* Asked in a process of its own: a driver that hangs or crashes is an answer, too. At most 20 s. Return: 0; -ENODEV with the
 * sentence, which says why; another negative errno with the sentence. */
int driver_check(struct err *err);
