/* Inside links/rdma: a device as the links of one hub use it; see dev.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "links/rdma/region.h"
#include "links/rdma/verbs.h"

struct rdma_dev;
struct rdma_hub;
struct rdma_link;

struct rdma_qp {
	struct ibv_qp *qp; /* owned; NULL: none */
	struct rdma_link *link;
	struct rdma_qp *next;        /* in the device's table */
	uint32_t index;              /* of the link's */
	uint64_t sq_posted, sq_done; /* work requests, counted from the connection's start */
};

/* What a device tells the links. */
struct rdma_dev_sink {
	void (*on_completion)(struct rdma_qp *q, const struct ibv_wc *wc);
	void (*on_event)(struct rdma_dev *d, const struct ibv_async_event *e);
	/* The completion queue works no more: @what failed, with @status. */
	void (*on_failure)(struct rdma_dev *d, const char *what, const char *status);
};

#define RDMA_QP_BUCKETS 256

struct rdma_dev {
	const struct verbs *v;
	const struct rdma_dev_sink *sink;
	struct rdma_hub *hub;    /* for the sink */
	struct ibv_context *ctx; /* owned, so that all of the device's events come here, too */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint32_t cq_entries, cq_used;
	bool can_read;       /* RDMA READ, both ways */
	bool is_gone;        /* removed or failed: goes when its last link has */
	uint32_t n_notifies; /* requested and not yet read from the channel */
	enum { NOT_ARMED, ARMED_FOR_PEER, ARMED_FOR_ALL } armed;
	struct rdma_qp *qps[RDMA_QP_BUCKETS]; /* by number */
	struct rdma_regions regions;
	char name[64];
	struct rdma_dev *next; /* of the hub */
};

/* Its descriptors are watched by @epoll_fd: with @d for completions, with d->ctx for the device's
 * own events. All borrowed. Return: 0; negative errno with the sentence. */
int rdma_dev_new(const struct verbs *v, struct ibv_device *device, int epoll_fd,
		 const struct rdma_dev_sink *sink, struct rdma_dev **ret, struct err *err);
void rdma_dev_free(struct rdma_dev *d);
/* Room for @entries more completions. Return: 0; negative errno with the sentence. */
int rdma_dev_reserve(struct rdma_dev *d, uint32_t entries, struct err *err);
void rdma_dev_add_qp(struct rdma_dev *d, struct rdma_qp *q);
void rdma_dev_drop_qp(struct rdma_dev *d, struct rdma_qp *q); /* destroys it, too */
/* Takes completions to their links. Return: whether there were some. */
bool rdma_dev_poll(struct rdma_dev *d);
/* Asks for an event at the next completion: of the peer's solicited pieces, or of any. Return:
 * false: there are completions already. */
bool rdma_dev_arm(struct rdma_dev *d, bool for_all);
void rdma_dev_read_channel(struct rdma_dev *d); /* the events that were asked for */
void rdma_dev_read_events(struct rdma_dev *d);  /* the device's own */

/* @epoll_fd wakes its sleeper for @fd, and brings @tag. Return: 0; negative errno. */
int rdma_watch(int epoll_fd, int fd, void *tag);
