/* Inside links/rdma: what goes wrong, in words, and which links it ends; see error.c. */
#pragma once

#include "links/rdma/state.h"

/* By a completion of queue pair base->bad_qp. */
void rdma_fail_status(struct rdma_link *l, const struct ibv_wc *wc);
/* As in the sinks. */
void rdma_on_device_event(struct rdma_dev *d, const struct ibv_async_event *e);
void rdma_on_device_failure(struct rdma_dev *d, const char *what, const char *status);
void rdma_on_device_removal(struct rdma_hub *h, const struct ibv_device *device);
