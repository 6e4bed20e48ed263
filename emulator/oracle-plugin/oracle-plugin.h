/* libnbox-oracle.so: what NCCL loads for nbox-oracle, as a network that moves nothing
 * (NCCL_NET_PLUGIN) and as a tuner that only listens (NCCL_TUNER_PLUGIN). Both are its path; the
 * program that holds NCCL opens it by the same path, and so gets the same copy, and finds these
 * functions by dlsym().
 *
 * As a network it has the devices that it is told; without any it is none, and NCCL takes
 * its own. It answers listen, connect and accept at once, whoever is meant, so that NCCL can
 * connect ranks that do not exist; it refuses to carry data, and says so in NCCL's log. NCCL 2.21
 * to 2.30.
 *
 * All functions may be called by any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl-plugin/plugin.h"
#include "nccl-plugin/tuner.h"

#define NBOX_ORACLE_NET "nbox" /* its name, for NCCL_NET */
#define NBOX_ORACLE_DEVICES_MAX 64
#define NBOX_ORACLE_TABLES_KEPT 1024

struct nbox_oracle_device {
	const char *name; /* as in NCCL_TOPO_FILE's <net>, which its other properties are in, too */
	const char *pci_path; /* /sys/devices/...; NULL: at the first CPU */
	uint64_t guid;        /* of the card; ports of one card have the same */
	int port;
	int speed_mbps;
	float latency_us;
	int n_comms_max; /* as IB tells it, or 65536 */
	bool has_gdr;    /* reads and writes the GPU's memory by itself */
};

/* Whether NCCL may take the ports of one card for one device: so it does with InfiniBand and RoCE
 * (NCCL_NET_MERGE_LEVEL), not with TCP. NCCL 2.21 to 2.23 did that inside their own network: for
 * those give both ports as one, "mlx5_0+mlx5_1" of the summed speed. */
enum nbox_oracle_fusing { NBOX_ORACLE_SINGLE, NBOX_ORACLE_FUSED };

/**
 * nbox_oracle_set_devices - which devices NCCL finds
 * @devices: of @n; copied
 *
 * Before the first communicator: NCCL asks once.
 * Return: 0; -EBUSY when NCCL has asked already; -E2BIG for too many; -EINVAL for a device without
 * name or speed; -ENAMETOOLONG for a name or path of more than 255 characters.
 */
int nbox_oracle_set_devices(const struct nbox_oracle_device *devices, size_t n,
			    enum nbox_oracle_fusing fusing);

/* How NCCL judged one collective (or several of one group and kind, of about one size). */
struct nbox_oracle_table {
	uint64_t number;  /* 0, 1, ... in the order in which NCCL asked */
	uint64_t comm;    /* NCCL's number of the communicator; 0 before 2.28 */
	unsigned context; /* of which rank's communicator: 0, 1, ... as they were made */
	size_t n_ranks;   /* of the communicator */
	size_t n_nodes;
	int plugin_version; /* of the tuner: 2 to 6 */
	int function;       /* enum plugin_function */
	size_t bytes;       /* of the larger buffer of a rank */
	int n_ops;          /* in NCCL's words, numPipeOps */
	bool is_registered; /* user buffers; version 4 and later */
	bool has_costs;     /* all but version 2 */
	int n_algorithms;   /* rows that NCCL gave */
	/* us; TUNER_IGNORED where NCCL cannot take it, or is told not to. NCCL takes the
	 * least, of equals the first. */
	float us[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS];
	int has_collnet, has_nvls; /* version 2 */
};

/**
 * nbox_oracle_tables - how many collectives NCCL has asked the tuner about
 *
 * The last one's number is one less.
 */
uint64_t nbox_oracle_tables(void);
/**
 * nbox_oracle_table - one of them
 *
 * Return: 0; -ENOENT for one that is not yet there; -ESTALE for one of which there were
 * NBOX_ORACLE_TABLES_KEPT newer ones.
 */
int nbox_oracle_table(uint64_t number, struct nbox_oracle_table *ret);

/* The tables that NCCL's costs come of. Return: 0; -ENOENT before 2.28, or without a communicator.
 */
int nbox_oracle_constants(struct tuner_constants *ret, struct tuner_domains *ret_domains);

/**
 * nbox_oracle_stop_ops - makes each collective fail when NCCL has decided on it
 *
 * The group ends with ncclRemoteError; its communicators stay as they were. So NCCL connects and
 * launches nothing, and the user's own network can stay. (ncclGroupSimulateEnd() launches nothing,
 * but connects.) One collective a group: the first that fails ends it. NCCL 2.21 prints its
 * decision between two questions to the tuner, of which the second fails. Off at first.
 */
void nbox_oracle_stop_ops(bool is_on);

/* What NCCL did with the network. Refused: a send, a receive, a flush, or a test of one. */
struct nbox_oracle_counts {
	uint64_t n_inits, n_listens, n_connects, n_accepts, n_registrations, n_refused;
	int64_t n_open, n_registered; /* now: listeners, senders and receivers; pieces of memory */
};
void nbox_oracle_counts(struct nbox_oracle_counts *ret);
