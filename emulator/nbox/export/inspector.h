/* Ops as NCCL Inspector writes them (NVIDIA/nccl, plugins/profiler/inspector, format v4.0): a JSON
 * object a line, of all real ranks. Times are virtual, from arrival to end. nbox fit reads it. */
#pragma once

#include <stdio.h>

#include "engine/record-rows.h"

/* Return: 0; -ENOMEM. */
int inspector_print(const struct record *rec, FILE *to);
