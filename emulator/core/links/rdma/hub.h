/* Inside links/rdma: what the links of one thread share; see hub.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "links/rdma/dev.h"
#include "links/rdma/options.h"
#include "links/rdma/verbs.h"

/* A request that came to a listener and was not accepted yet. */
struct rdma_request {
	struct rdma_cm_id *id;
	uint8_t data[64];
	size_t n_data;
	struct rdma_request *next;
};

/* What a hub tells the links. */
struct rdma_hub_sink {
	struct rdma_dev_sink dev;
	void (*on_cm_event)(struct rdma_link *l, const struct rdma_cm_event *e);
	void (*on_tick)(struct rdma_hub *h); /* about once a second */
	/* The device that is listened at was removed. */
	void (*on_removal)(struct rdma_hub *h, const struct ibv_device *device);
};

/* Of the links that one listener accepted, or of one link that connected: event channels,
 * completion queues, a descriptor to sleep on. */
struct rdma_hub {
	const struct verbs *v;
	const struct rdma_hub_sink *sink;
	struct rdma_options options;
	struct rdma_event_channel *cm;
	int epoll_fd, timer_fd;
	int request_fd; /* readable while there are requests */
	uint32_t n_users;
	bool is_armed;   /* somebody may have slept since the last look */
	uint32_t rounds; /* without a look at the descriptors */
	uint64_t look_ns;
	uint64_t ticks; /* seconds, roughly */
	struct rdma_dev *devs;
	struct rdma_link *links; /* theirs; the hub never looks at one */
	struct rdma_request *requests, **last_request;
	const struct rdma_cm_id *listening; /* owned by the listener; NULL: none */
	bool is_removed; /* its device was removed, and the listener does not know yet */
};

int rdma_hub_new(const struct rdma_options *o, const struct rdma_hub_sink *sink,
		 struct rdma_hub **ret, struct err *err);
void rdma_hub_leave(struct rdma_hub *h); /* the last user frees it */
/* The device of @ctx (librdmacm's) with room for @entries more completions. */
int rdma_hub_device(struct rdma_hub *h, struct ibv_context *ctx, uint32_t entries,
		    struct rdma_dev **ret, struct err *err);
/* Takes completions to their links. Return: whether there were some. */
bool rdma_hub_poll(struct rdma_hub *h);
/* The same for all that has a descriptor: events of connections, devices, the timer. */
void rdma_hub_look(struct rdma_hub *h);
/* rdma_hub_look() now and then, and always after a sleep. */
void rdma_hub_glance(struct rdma_hub *h);
/* An id of a connection. Its events go to @context (NULL: a listener's). Return: 0; negative errno
 * with the sentence. */
int rdma_hub_new_id(struct rdma_hub *h, void *context, struct rdma_cm_id **ret, struct err *err);
void rdma_hub_drop_id(struct rdma_hub *h, struct rdma_cm_id *id);
void rdma_hub_take_request(struct rdma_hub *h, struct rdma_request **ret);
/* Once: whether the device that is listened at was removed. Requests that came over it are
 * dropped. */
bool rdma_hub_take_removal(struct rdma_hub *h);

/* Between ticks; tests make it long, so that no tick hides a lost wake-up. */
extern long rdma_tick_ms;
