/* A fake RDMA device for tests: libibverbs and librdmacm as far as the rdma link uses them
 * (links/rdma/verbs.h), between ends in one process. It keeps the rules that matter (keys, bounds,
 * posted receives, states, order, solicited events) and breaks on demand. One lock; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "links/rdma/verbs.h"

struct rdma_hello;

extern const struct verbs fake_verbs;

/* Faults. Zero: none. Read under no lock: set them while no other thread works. */
extern struct fake_faults {
	int poll_most; /* completions one poll gives at most */
	bool poll_fails, notify_fails;
	bool has_no_read;     /* the device */
	uint32_t inline_most; /* more is refused at create_qp; default 512 */
	uint32_t cq_most;     /* resize_cq refuses more */
	int reg_errno;        /* of the next registrations of at least reg_bytes */
	size_t reg_bytes;
	int open_errno, alloc_pd_errno, create_qp_errno, channel_errno;
	uint32_t send_number; /* the n-th send from now on completes with send_status */
	enum ibv_wc_status send_status;
	uint32_t imm_number; /* the n-th send from now on carries imm instead */
	uint32_t imm;
	bool hold_odd_qps;   /* holds what goes over queue pairs of odd place ... */
	bool is_cut;         /* nothing arrives, sends end in RETRY_EXC_ERR */
	bool is_vanishing;   /* nothing arrives, sends never end */
	bool drop_establish; /* the last word of a connection is lost */
	bool drop_answer;    /* requests are never answered */
	int bind_errno;      /* cm_bind_addr() fails */
	enum rdma_cm_event_type
		cm_event; /* comes in place of the success: ADDR_, ROUTE_, CONNECT_ERROR */
	int cm_status;
	void (*edit_hello)(struct rdma_hello *h, bool is_answer); /* on its way */
	bool corrupt_hello;     /* private data of requests arrive changed */
	int hello_version;      /* ... or with this version */
	bool has_rails;         /* fake0 and fake1 are 198.51.100.1 and .2 of one network */
	bool rail_is_down;      /* the port of fake1 */
	enum ibv_mtu path_mtu;  /* 0: 4096 */
	bool has_roce_v1;       /* GID 2 is of RoCE v1, and GID 3 the same address again */
	bool is_infiniband;     /* the ports; fake0's GID 0 is that of IPoIB interface ib0 */
	bool has_subnet_prefix; /* ... whose GIDs look like global IPv6 addresses */
	bool has_no_ipoib, ipoib_is_down, ipoib_has_v6_only;
	int dmabuf_errno;      /* of registrations of dma-bufs */
	int peer_memory_errno; /* ... and of memory of the GPU by its address */
} fake_faults;

/* The last attributes that a queue pair was set to. */
extern struct fake_seen {
	enum ibv_mtu mtu;
	struct ibv_ah_attr ah;
	uint8_t rnr_timer, timeout, retries, rnr_retries;
	uint32_t inline_bytes, n_reads;
} fake_seen;

void fake_reset(void);
void fake_release_held(void); /* ... until here */
/* An asynchronous event of the first device: of its port, or its newest queue pair or that
 * one's completion queue. */
void fake_async(enum ibv_event_type type);
/* An event for all ids of the connection manager, listening ones too. */
void fake_cm_tell_all(enum rdma_cm_event_type type, int status);
/* A descriptor, owned by @c, that hangs up when no process, not even a forked child, has the
 * command descriptor of @c: then a kernel would destroy all that was made with @c. */
int fake_lifeline(struct ibv_context *c);
/* A GPU whose memory only the device can touch. *ret_seen is the registered address, where a touch
 * by the CPU is fatal; *ret_real are the same bytes for the test. Any thread. */
void fake_gpu_alloc(uint64_t bytes, void **ret_seen, unsigned char **ret_real, int *ret_fd);
void fake_gpu_free(void *seen);
extern _Atomic unsigned int fake_n_dmabufs, fake_n_peer_memory; /* registered so, ever */
/* The number of queue pairs, regions, ids, queues and channels that were not given back. */
unsigned int fake_leaks(void);
unsigned int fake_rnr(void); /* sends that met no receive */
