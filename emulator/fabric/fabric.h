/* The fabric of the virtual cluster: what its nodes are (GPUs, NVLink or PCIe, NICs), and the
 * network between them. Immutable once made. A link has one direction; its number follows from what
 * it joins, so that a world of 65,536 ranks costs no memory. Links that the user changed stand in a
 * short list.
 *
 * Bandwidths of classes are raw: a data sheet's, each way. What a link carries of NCCL's bytes is
 * that times fabric_efficiency() of its kind; fabric_link() says it.
 *
 * Latencies are those that NCCL's own step times do not contain. These were measured over NVLink,
 * which hence has none here, and over InfiniBand, whose 2 us a scheduler takes off them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "schedule/coll.h"
#include "topology/membership.h"

#define FABRIC_NAME_MAX 32
#define FABRIC_CLASSES_MAX 8
#define FABRIC_NICS_MAX 16
#define FABRIC_GPUS_MAX 1024 /* of a node */
#define FABRIC_SWITCHES_MAX 1024
#define FABRIC_GROUPS_MAX 4096 /* of a dragonfly: each pair is looked at */
#define FABRIC_PATH_MAX 16

enum fabric_intra { FABRIC_NVSWITCH, FABRIC_NVLINK, FABRIC_PCIE };
enum fabric_cpu { FABRIC_INTEL, FABRIC_AMD, FABRIC_ARM, FABRIC_OTHER_CPU };
enum fabric_distance { FABRIC_PIX, FABRIC_PXB, FABRIC_PHB, FABRIC_SYS };
enum fabric_nic {
	FABRIC_INFINIBAND,
	FABRIC_ROCE,
	FABRIC_EFA, /* of p3dn and p4d: bytes arrive in any order */
	FABRIC_EFA2,
	FABRIC_SLINGSHOT,
	FABRIC_SOCKET,
	FABRIC_TCPX /* TCP that writes into GPU memory */
};
enum fabric_network_kind {
	FABRIC_SWITCH,     /* one switch that never blocks */
	FABRIC_RAIL,       /* NIC i of all nodes of a group at leaf i; spines above */
	FABRIC_LEAF_SPINE, /* all NICs of a node at its leaf */
	FABRIC_FAT_TREE,   /* leaf, spine and core */
	FABRIC_DRAGONFLY,  /* groups, each pair of them joined */
	FABRIC_CABLES      /* nodes at switches, explicit cables between these */
};

/* A kind of node. */
struct fabric_class {
	char name[FABRIC_NAME_MAX];
	char gpu[FABRIC_NAME_MAX]; /* "H100" */
	uint32_t sm;               /* ten times the compute capability: 90 */
	uint32_t n_gpus;
	uint32_t domain_nodes; /* that NVLink joins: 1, or 18 in an NVL72 */
	enum fabric_intra intra;
	bool has_nvls;
	double gpu_bytes_per_ns; /* a GPU's port, each way; raw */
	double gpu_latency_ns;   /* from port to port */
	enum fabric_cpu cpu;
	enum fabric_nic nic;
	uint32_t n_nics;
	uint32_t nic_gpu[FABRIC_NICS_MAX]; /* the nearest GPU; ascending */
	enum fabric_distance distance;     /* of a NIC from that */
	bool has_gdr;
	double pcie_bytes_per_ns;              /* between GPU and NIC, each way; raw; 0: no limit */
	double nic_bytes_per_ns;               /* of one NIC, each way; raw */
	double gpu_efficiency, nic_efficiency; /* 0: that of its kind; else what was fitted */
	bool is_preset; /* a preset's, maybe with other NICs: published figures are of such */
};

struct fabric_network {
	enum fabric_network_kind kind;
	double latency_ns;       /* from NIC to NIC through one switch, as NCCL sees it */
	double hop_latency_ns;   /* each switch beyond the first */
	uint32_t nodes_per_leaf; /* rail, leaf-spine, fat tree; dragonfly: nodes a router */
	uint32_t leaves_per_pod; /* fat tree; dragonfly: routers a group */
	double oversubscription; /* >= 1: of a leaf, bandwidth of its nodes / up from it; dragonfly:
				  * of a group, to all others */
	uint32_t ecmp; /* 0: packets spread evenly over a leaf's cables; else each connection takes
			* one, by a hash with this seed */
};

/* Nodes of one class that stand together. */
struct fabric_nodes {
	uint32_t first, n, class;
};

/* FABRIC_CABLES: between two switches, both ways. */
struct fabric_cable {
	uint32_t from, to;
	double latency_ns, bytes_per_ns;
};

/* A link that is not what its class or the network says: --cable. */
struct fabric_change {
	uint64_t link;
	double latency_ns, bytes_per_ns; /* raw, as a class's; negative: as before */
};

/* What nbox fit --fabric found its numbers from. */
struct fabric_fit {
	uint32_t n_points; /* that were held out; 0: the fabric was not fitted */
	double error;      /* median of their errors, a ratio */
	uint32_t min_ranks, max_ranks;
	double min_bytes, max_bytes; /* nccl-tests' sizes */
};

/* By what the times of an op between nodes were measured to differ from what the links say, of
 * @bytes (as struct sched has them): the protocols of a network have sizes that suit them less. */
struct fabric_residual {
	uint32_t kind; /* enum coll_kind */
	double bytes, factor;
};

struct fabric {
	char name[FABRIC_NAME_MAX]; /* the preset's, or the file's */
	char *source;               /* owned: where each part is from, for the summary */
	uint32_t n_nodes;
	bool has_size;          /* the file that it is from says how many nodes there are */
	uint32_t gpus_per_node; /* of every class: nbox's worlds have nodes of equal size */
	struct fabric_class classes[FABRIC_CLASSES_MAX];
	uint32_t n_classes;
	struct fabric_nodes *nodes; /* owned, in order, without gaps */
	size_t n_nodes_runs;
	struct fabric_network network;
	uint32_t *node_switch; /* owned; FABRIC_CABLES: of each node */
	uint32_t n_switches;
	struct fabric_cable *cables; /* owned */
	size_t n_cables;
	uint32_t *next_cable; /* owned; of [switch][switch to reach]; UINT32_MAX: no way. Made by
			       * fabric_check() */
	struct fabric_change *changes; /* owned, sorted by link */
	size_t n_changes;
	struct fabric_fit fit;
	struct fabric_residual *residuals; /* owned, sorted by kind and bytes */
	size_t n_residuals;
};

struct fabric_link {
	double latency_ns, bytes_per_ns;
};

#define FABRIC_NIC_NEAR UINT32_MAX

/* fabric.c */
struct fabric *fabric_free(struct fabric *f); /* NULL; takes NULL */
/* One run of nodes of @class. Return: NULL: out of memory. */
struct fabric *fabric_new(const struct fabric_class *class, const struct fabric_network *network,
			  uint32_t n_nodes);
const struct fabric_class *fabric_class_of(const struct fabric *f, uint32_t node);
/* The first node of the domain that @world_rank is in: no two domains have the same. */
uint32_t fabric_domain(const struct fabric *f, uint32_t world_rank);
uint32_t fabric_domain_nodes(const struct fabric *f, uint32_t domain); /* how many it has */

/* check.c: what must hold of all together: positive and finite numbers, n_nics up to
 * FABRIC_NICS_MAX, nodes without gaps, a way from each node to each. Makes next_cable. Return: 0;
 * -EINVAL with the sentence; -ENOMEM. */
int fabric_check(struct fabric *f, struct err *err);
bool fabric_is_rate(double bytes_per_ns); /* more than 1 B/s, less than 1 EB/s */
bool fabric_is_latency(double ns);        /* up to 1000 s */

/* preset.c: "dgx-h100", of any number of nodes. @gpus_per_node: how many of a node's GPUs are used,
 * the first ones; 0: all. Return: 0; -ENOENT with the nearest names; as fabric_check(). */
int fabric_preset(const char *name, uint32_t n_nodes, uint32_t gpus_per_node, struct fabric **ret,
		  struct err *err);
/* The @i-th preset's name and summary; NULL: there are no more. */
const char *fabric_preset_name(size_t i, const char **ret_summary);

/* What a hop over the NVLinks of such GPUs takes besides NCCL's own step times, ns. */
double fabric_gpu_latency(uint32_t sm, bool has_switch);

/* near.c: the NICs that GPU @local of a class reaches without another GPU's help, as bits. Its own,
 * else those of the nearest GPU below that has some, else those of the first that has. */
uint32_t fabric_near_nics(const struct fabric_class *class, uint32_t local);
/* Those of the GPUs from @from to before @to. */
uint32_t fabric_nics_of_gpus(const struct fabric_class *class, uint32_t from, uint32_t to);
/* The @i-th of GPU @local's, from 0, round and round. */
uint32_t fabric_near_nic(const struct fabric_class *class, uint32_t local, uint32_t i);
/* Places the class's NICs, at most FABRIC_NICS_MAX, beside its GPUs evenly. */
void fabric_spread_nics(struct fabric_class *class);

/* path.c: the links of a message from @src to @dst (world ranks) in order. @nic: of the source's
 * node and of the destination's, for rings and trees that leave a node by the NIC of their channel;
 * a number beyond a node's NICs counts on from its first. FABRIC_NIC_NEAR: each rank's nearest. A
 * NIC that is not near to a rank with NVLink is reached through the GPU next to it. 0 links: to
 * itself. Return: their number, at most FABRIC_PATH_MAX; -EHOSTUNREACH without a path. O(1), but
 * for FABRIC_CABLES: O(links). */
int fabric_path(const struct fabric *f, uint32_t src, uint32_t dst, uint32_t nic,
		uint64_t ret_links[FABRIC_PATH_MAX]);

/* ecmp.c: where network.ecmp says so, instead of all cables of a leaf the one that the connection
 * takes. The cables of a leaf have a NIC's rate each; they are numbered from 1. */
void fabric_ecmp(const struct fabric *f, uint32_t src, uint32_t dst, uint16_t lane, uint64_t *links,
		 uint32_t n);

/* link.c: what a link carries of NCCL's bytes, with changes. */
void fabric_link(const struct fabric *f, uint64_t link, struct fabric_link *ret);

/* The one place of the factors between a data sheet's bandwidth and what NCCL gets of it. */
enum fabric_medium { FABRIC_MEDIUM_NVLINK, FABRIC_MEDIUM_PCIE, FABRIC_MEDIUM_NIC };
double fabric_efficiency(enum fabric_medium medium, enum fabric_nic nic);
/* The same of a class, which may have its own. */
double fabric_gpu_efficiency(const struct fabric_class *class);
double fabric_nic_efficiency(const struct fabric_class *class);
/* The same of a link: between switches as of a NIC of the first class; 1 of a file's cables. */
double fabric_link_efficiency(const struct fabric *f, uint64_t link);

/* link-name.c: "node3.nic2.out", "node3.gpu5.in", "leaf1.up", ... Return: @buf. */
char *fabric_link_name(const struct fabric *f, uint64_t link, char *buf, size_t size);
/* named-links.c: the same back, with "*" for any number, and without its direction for both: all
 * links that match, sorted; *ret_links is the caller's to free(). Return: 0; -ENOENT, -EINVAL with
 * the sentence; -ENOMEM. */
int fabric_links_named(const struct fabric *f, const char *name, uint64_t **ret_links,
		       size_t *ret_n, struct err *err);
/* change.c: changes all of these. Negative: as before. Return: the same. */
int fabric_change(struct fabric *f, const char *name, double bytes_per_ns, double latency_ns,
		  struct err *err);

/* residual.c: the factor of an op between nodes: between two sizes that were measured, between
 * their factors; outside them the nearest one's. 1: nothing is known. O(residuals). */
double fabric_residual(const struct fabric *f, enum coll_kind kind, double bytes);

/* view.c: what an op of @m sees of it: the nbox_fabric of the model ABI, in the fabric's own words.
 * Bandwidths are raw, as NCCL reads them: it does not see that a cable is slow. */
struct fabric_view {
	uint32_t n_domains, ranks_per_domain, most_ranks_per_domain; /* 0: uneven */
	uint32_t sm_min, sm_max;
	enum fabric_intra intra;
	enum fabric_cpu cpu;
	enum fabric_distance distance;
	bool has_nvls, has_gdr, has_order;
	uint32_t n_nics; /* of a domain, near to ranks of the op; the fewest */
	double gpu_bytes_per_ns, gpu_latency_ns, pcie_bytes_per_ns, nic_bytes_per_ns,
		net_latency_ns, nic_payload_bytes_per_ns;
};
/* Return: 0; -ENOMEM. O(ranks). */
int fabric_view(const struct fabric *f, const struct membership *m, struct fabric_view *ret);

/* bound.c: no op of @kind over @m takes less: its bytes through the busiest GPU port, the NICs of a
 * domain that are near to its ranks, a leaf or a group of leaves, or the latency of the longest
 * path that it needs, whichever is longer. @bytes as struct sched has them; of COLL_SENDRECV what
 * each rank sends to the next one, the last to the first. @ret_where: the link that says so, of
 * @size bytes; "" where nothing does. 0: one rank, or out of memory. O(ranks). */
double fabric_bound(const struct fabric *f, enum coll_kind kind, uint64_t bytes, uint32_t root,
		    const struct membership *m, char *ret_where, size_t size);

/* bisection.c: bytes/ns from the first half of the nodes to the second, over the NICs near to
 * ranks. *ret_ranks: of the smaller half. NAN: not known of FABRIC_CABLES. O(links). */
double fabric_bisection(const struct fabric *f, uint32_t *ret_ranks);
