/* Entry points that only forward or refuse: generated from the symbol table. */
#include "shim/entry/entry.h"

#include "shim/data/real-comm.h"
#include "shim/entry/group.h"
#include "shim/progress/comm.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

/* What a function answers when it cannot be called, by its result type. */
#define MISSING_ncclResult_t(name) real_missing(name)
#define MISSING_int(name) ((void)real_missing(name), -1)
#define MISSING_ncclTeam_t(name) ((void)real_missing(name), (ncclTeam_t){0, 0, 0})
#define REFUSED_ncclResult_t(name) refuse(name)
#define REFUSED_int(name) ((void)refuse(name), -1)
#define REFUSED_ncclTeam_t(name) ((void)refuse(name), (ncclTeam_t){0, 0, 0})

static ncclResult_t refuse(const char *name)
{
	return last_error_set(ncclInvalidUsage,
			      "%s: not possible on a communicator with virtual ranks (nbox)", name);
}

/* Replaces a virtual communicator by its real one. Return: 0; -1: there is none. */
static int to_real(ncclComm_t *comm)
{
	CLEANUP(comm_unrefp) struct comm *c = comm_find(*comm);
	struct err err;

	if (c && atomic_load_explicit(&c->state, memory_order_acquire) != COMM_READY)
		return -1;
	if (c && real_comm_get(c, comm, &err))
		return -1;
	group_enter_real(); /* a thread that has several members calls it for all in one group */
	return 0;
}

static bool is_virtual(ncclComm_t comm)
{
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (!c)
		group_enter_real();
	return c != NULL;
}

#define DEFINE_OWN(ret, name, params, args)

#define DEFINE(ret, name, params, args, is_refused)                                            \
	ret nccl##name params                                                                  \
	{                                                                                      \
		ENTER();                                                                       \
		if (is_refused)                                                                \
			return REFUSED_##ret("nccl" #name);                                    \
		return real_get()->name ? real_get()->name args : MISSING_##ret("nccl" #name); \
	}                                                                                      \
	ALSO_PNCCL(name);
#define DEFINE_PLAIN(ret, name, params, args) DEFINE(ret, name, params, args, false)
#define DEFINE_ON_REAL(ret, name, params, args) DEFINE(ret, name, params, args, to_real(&comm))
#define DEFINE_REFUSE(ret, name, params, args) DEFINE(ret, name, params, args, is_virtual(comm))
#define DEFINE_PLAIN_VOID(ret, name, params, args) \
	ret nccl##name params                      \
	{                                          \
		ENTER();                           \
		if (real_get()->name)              \
			real_get()->name args;     \
	}                                          \
	ALSO_PNCCL(name);

#define NCCL_SYMBOL(how, ret, name, params, args) DEFINE_##how(ret, name, params, args)
#include "shim/real/nccl-symbols.h"
#undef NCCL_SYMBOL
