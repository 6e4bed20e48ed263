/* Inside links/: libibverbs and librdmacm as a table of functions. The libraries are found at run
 * time, because libnbox.so links libc only and most machines have no RDMA device; a build needs
 * only their headers. All that the rdma link asks of the world goes through this table, so tests
 * can put their own in its place. */
#pragma once

#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/err.h"

/* What is inline in the real headers would ask for symbols of the library. */
#undef ibv_query_port
#undef ibv_reg_mr

/* Symbols of libibverbs.so.1, without "ibv_". */
/* clang-format off */
#define VERBS_IBV(X) \
	X(fork_init) X(get_device_list) X(free_device_list) X(get_device_name) \
	X(open_device) X(close_device) X(query_device) X(query_port) X(query_gid) \
	X(alloc_pd) X(dealloc_pd) X(reg_mr) X(dereg_mr) X(create_comp_channel) \
	X(destroy_comp_channel) X(create_cq) X(resize_cq) X(destroy_cq) X(get_cq_event) \
	X(ack_cq_events) X(create_qp) X(modify_qp) X(destroy_qp) X(get_async_event) \
	X(ack_async_event) X(wc_status_str) X(event_type_str)
/* clang-format on */

/* Symbols of librdmacm.so.1, without "rdma_". */
/* clang-format off */
#define VERBS_CM(X) \
	X(create_event_channel) X(destroy_event_channel) X(create_id) X(destroy_id) \
	X(bind_addr) X(listen) X(resolve_addr) X(resolve_route) X(init_qp_attr) X(connect) \
	X(establish) X(accept) X(reject) X(disconnect) X(get_cm_event) X(ack_cm_event) \
	X(event_str) X(get_src_port) X(set_option)
/* clang-format on */

struct verbs {
#define X(name) __typeof__(ibv_##name) *name;
	VERBS_IBV(X)
#undef X
#define X(name) __typeof__(rdma_##name) *cm_##name;
	VERBS_CM(X)
#undef X
	/* NULL: this libibverbs is older than rdma-core 34. */
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t bytes,
					uint64_t address, int fd, int access);
	/* Inline in the headers, through the device's own table. */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	/* libc's: the networks of this host. */
	int (*getifaddrs)(struct ifaddrs **ret);
	void (*freeifaddrs)(struct ifaddrs *list);
};

/* Loads the libraries the first time. Any thread. Return: 0; -ENOPKG with a sentence
 * that says what to install. */
int verbs_get(const struct verbs **ret, struct err *err);
/* For tests: @fake (borrowed) from now on; NULL: the real ones again. */
void verbs_replace(const struct verbs *fake);
