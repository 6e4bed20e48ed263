/* Events of dPRO (github.com/joapolarbear/dpro, docs/format.md): names `cat.op.sub`, such as
 * "FW.conv1", "BW.conv1", "UPDATE_3", "I/O_read", "Comm.4+5.SEND"; of a message of a collective
 * also loop, channel, chunk and slice. */
#pragma once

#include "trace/chrome.h"

/* Return: 1: it is one; 0: it is none; -EINVAL, -EFBIG with the sentence; -ENOMEM. */
int dpro_event(struct chrome *c, const struct json_value *event, struct err *err);
