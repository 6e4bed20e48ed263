/* The options of rdma links. Workers and nboxd take them from NBOX_IB_ variables, named after
 * NCCL's (NCCL_IB_HCA and so on); nboxd also from its flags and cluster file (base/options.def). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct rdma_options {
	char hca[64];          /* device name; "": see address.c */
	uint32_t port;         /* of the device; 0: any */
	int32_t gid_index;     /* -1: by itself */
	int32_t traffic_class; /* -1: the system's */
	uint32_t timeout;      /* ack timeout 4.096 us x 2^n */
	uint32_t retry_count;  /* 0 to 7 */
	uint32_t mtu;          /* 256 to 4096; 0: the path's */
	uint32_t qps;          /* queue pairs of one link */
	uint32_t inline_bytes; /* most that a SEND carries in its work request */
	uint32_t ring_bytes;   /* of each link; the other end writes bodies there */
	uint64_t memory_bytes; /* most memory kept registered for bodies that are sent */
	bool is_busy_polling;  /* never sleeps: needs a core of its own */
};

void rdma_options_init(struct rdma_options *o); /* the defaults */
/* @name without NBOX_IB_, such as "HCA". Return: 0; -EINVAL with the sentence; -ENOENT. */
int rdma_options_set(struct rdma_options *o, const char *name, const char *text, struct err *err);

/* The options of links that this process opens from now on; without it, the variables'. */
void rdma_options_use(const struct rdma_options *o);
int rdma_options_get(struct rdma_options *ret, struct err *err);
