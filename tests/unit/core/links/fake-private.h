/* Inside fake-*.c: what the parts need of each other. Each function of libibverbs and librdmacm is
 * in the part that has its noun, under its own name behind "fake_"; fake-verbs.c has the table of
 * all. */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "fake-verbs.h"

#define X(name) __typeof__(ibv_##name) fake_##name;
VERBS_IBV(X)
#undef X
#define X(name) __typeof__(rdma_##name) fake_cm_##name;
VERBS_CM(X)
#undef X

/* --- fake-verbs.c --- */
extern pthread_mutex_t fake_lock;
extern unsigned int fake_alive; /* things that were not given back */

/* Pipes of events: one byte an event. */
void fake_ring(int fd);
bool fake_take(int fd);
int fake_pipe(int fds[2]);

/* --- fake-device.c --- */
/* With the lock: the context that the connection manager has of a device. */
struct ibv_context *fake_cm_context(unsigned int device);
/* An event for all contexts of the first device, or only for @only. The caller holds the lock. */
void fake_async_locked(const struct ibv_async_event *e, struct ibv_context *only);

union ibv_gid fake_port_gid(unsigned int device);

/* --- fake-net.c: networks of this host --- */
int fake_get_networks(struct ifaddrs **ret);
void fake_free_networks(struct ifaddrs *list);

/* --- fake-memory.c: with the lock: whether memory of that key may be used so --- */
bool fake_may_touch(uint32_t key, uint64_t addr, uint64_t n, int access);
struct ibv_mr *fake_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t n, uint64_t address,
				  int fd, int access);
/* With the lock: where the device finds the bytes of that address. */
void *fake_bytes(uint64_t addr);

/* --- fake-queue.c: completion queues --- */
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* With the lock. */
void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool is_solicited);

/* --- fake-wire.c: queue pairs, and what goes between them --- */
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
extern unsigned int fake_n_rnr;
/* The newest queue pair; NULL: it is gone. */
struct ibv_qp *fake_newest_qp(void);
