/* Plays the ranks that do not exist, and asks nbox-oracle about a world. One thread, on an event
 * loop of its own. Each world has a nbox-oracle of its own: NCCL 2.28 cannot load its network again
 * when its last communicator is gone, and the memory of one is not to be told of the next. */
#pragma once

#include <stdio.h>

#include "nbox/oracle/log.h"
#include "nbox/oracle/request.h"

struct oracle_host;

/* What was found out about a world. */
struct oracle_world {
	uint32_t n_ranks, n_nodes, gpus_per_node;
	struct nccl_log *log;       /* owned */
	struct oracle_costs *costs; /* owned; in the order of sizes within that of ops */
	size_t n_costs;
	/* NCCL's initialisation */
	uint64_t init_ns, responder_ns; /* of it, time of this process's CPU */
	int64_t rss_bytes, gpu_bytes;   /* that it took: all GPUs' process, the first GPU */
	uint64_t ask_ns;
	uint64_t n_transports;  /* that were set up with ranks that do not exist */
	uint64_t n_connections; /* over nbox's network */
};

/* Of the NCCL that nbox-oracle has loaded. */
struct oracle_nccl {
	int version, n_gpus;
	char name[16], path[2048]; /* "2.28.9" */
	char gpu[64];              /* the first one's name; "": not known */
	const char *tried;         /* as in struct nccl_records */
};

/* @program, @plugin: of nbox-oracle. *ret is the caller's also where this fails, for its log.
 * Return: 0, and *ret_nccl; negative errno with the sentence. */
int oracle_host_new(const struct oracle_request *q, const char *program, const char *plugin,
		    struct oracle_host **ret, struct oracle_nccl *ret_nccl, struct err *err);
/* A communicator of that shape is made, asked, and ended. Return: as above. */
int oracle_host_world(struct oracle_host *h, const struct oracle_shape *shape,
		      struct oracle_world *ret, struct err *err);
void oracle_world_deinit(struct oracle_world *w);
/* All that NCCL has logged, into @to. */
void oracle_host_print_log(const struct oracle_host *h, FILE *to);
void oracle_host_free(struct oracle_host *h); /* NULL is allowed; nbox-oracle is ended */
