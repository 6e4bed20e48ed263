/* Events of PyTorch's profiler (torch.profiler, Kineto): operators and calls of CUDA on threads,
 * kernels and copies on streams. Kernels of NCCL have what PyTorch says of their collective. */
#pragma once

#include "trace/chrome.h"

/* Return: 1: it is one; 0: it is none; -EINVAL, -EFBIG with the sentence; -ENOMEM. */
int kineto_event(struct chrome *c, const struct json_value *event, struct err *err);
