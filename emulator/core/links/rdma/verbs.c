/* See verbs.h: the real libraries, by dlopen(). They are never closed, because a provider may
 * have left handlers behind. */
#include "links/rdma/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static struct verbs real;
static const struct verbs *replaced;
static struct err load_err;
static int load_code;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return qp->context->ops.post_send(qp, wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return qp->context->ops.post_recv(qp, wr, bad);
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, n, wc);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

static void *open_library(const char *file, const char *package)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		load_code = err_set(&load_err, ENOPKG,
				    "rdma needs the library %s (%s); install the packages %s and "
				    "ibverbs-providers",
				    file, dlerror(), package);
	return handle;
}

static void *find(void *library, const char *symbol)
{
	void *f = dlsym(library, symbol);

	if (!f && !load_code)
		load_code = err_set(&load_err, ENOPKG,
				    "rdma: the installed RDMA libraries have no %s; nbox needs "
				    "rdma-core 24 or newer",
				    symbol);
	return f;
}

static void load(void)
{
	void *ibv = open_library("libibverbs.so.1", "libibverbs1");
	void *cm = ibv ? open_library("librdmacm.so.1", "librdmacm1") : NULL;

	if (!cm)
		return;
		/* through a void pointer, as dlsym() wants it */
#define X(name) *(void **)&real.name = find(ibv, "ibv_" #name);
	VERBS_IBV(X)
#undef X
#define X(name) *(void **)&real.cm_##name = find(cm, "rdma_" #name);
	VERBS_CM(X)
#undef X
	*(void **)&real.reg_dmabuf_mr = dlsym(ibv, "ibv_reg_dmabuf_mr");
	real.post_send = post_send;
	real.post_recv = post_recv;
	real.poll_cq = poll_cq;
	real.req_notify_cq = req_notify_cq;
	real.getifaddrs = getifaddrs;
	real.freeifaddrs = freeifaddrs;
	/* Registered pages must stay ours when the job forks. Newer kernels see to that themselves;
	 * where fork_init() fails too, no user of RDMA on this machine can fork. */
	if (!load_code)
		real.fork_init();
}

int verbs_get(const struct verbs **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (replaced) {
		*ret = replaced;
		return 0;
	}
	pthread_once(&once, load);
	if (load_code)
		return err_set(err, -load_code, "%s", load_err.text);
	*ret = &real;
	return 0;
}

void verbs_replace(const struct verbs *fake)
{
	replaced = fake;
}
