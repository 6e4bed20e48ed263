/* NVIDIA's driver and NCCL: what there is of them. Each is asked in a process of its own: opening
 * them may start threads, and one that hangs or crashes is an answer, too. At most 20 s each. */
#pragma once

#include "base/err.h"

struct driver {
	int version; /* 1000 x major + 10 x minor, of the CUDA that it is for; 0: there is no driver
		      */
	int n_devices;
	char why[256]; /* why no GPU can be used; "": all is well */
};

struct driver_nccl {
	int version; /* 10000 x major + 100 x minor + patch; 0: there is none */
	char path[2048];
	char why[256]; /* why it cannot be used; "": all is well */
};

void driver_ask(struct driver *ret);
/* Asks the NCCL that NBOX_NCCL names, else the one on the search path. */
void driver_ask_nccl(struct driver_nccl *ret);
/* Can it run at the virtual size (--nccl full)? @n: it has a version. Return: 0; -EINVAL with the
 * sentence. */
int driver_nccl_goes_full(const struct driver_nccl *n, struct err *err);
/* Return: 0: a GPU can be used; -ENODEV with the sentence. */
int driver_check(struct err *err);
