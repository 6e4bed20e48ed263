/* The delay-model ABI of nbox: the only header that a model needs.
 *
 * A model is a shared object that exports one const symbol, `nbox_delaymodel`.
 * It answers how long things take; it never sleeps, reads no clock and draws
 * chance only from the generator that the host lends: an answer is a function of
 * its arguments, the parameters and the seed.
 *
 * Times are double nanoseconds of virtual time, sizes bytes, bandwidths bytes
 * per nanosecond (= GB/s). New fields are only ever added at the end of a
 * struct; struct_size tells who knows which. */
#ifndef NBOX_DELAYMODEL_H
#define NBOX_DELAYMODEL_H

#include <stddef.h>
#include <stdint.h>

#define NBOX_DELAYMODEL_ABI 2

enum nbox_op_kind { /* equals the host's enum coll_kind */
		    NBOX_ALLREDUCE,
		    NBOX_ALLGATHER,
		    NBOX_REDUCESCATTER,
		    NBOX_BROADCAST,
		    NBOX_REDUCE,
		    NBOX_ALLTOALL,
		    NBOX_GATHER,
		    NBOX_SCATTER,
		    NBOX_SENDRECV
};

/* The first four are schedules that the host plays; nbox_op has one of them. */
enum nbox_algo {
	NBOX_RING,
	NBOX_TREE,
	NBOX_DIRECT,
	NBOX_CHAIN,
	NBOX_NVLS,
	NBOX_NVLS_TREE,
	NBOX_PAT,
	NBOX_COLLNET
};
enum nbox_hop { NBOX_INTRA, NBOX_INTER, NBOX_SELF };
enum nbox_proto { NBOX_LL, NBOX_LL128, NBOX_SIMPLE }; /* NCCL's protocols and their order */

struct nbox_net { /* of the virtual cluster, for models whose parameters do not say */
	double intra_latency_ns, intra_bytes_per_ns;
	double inter_latency_ns, inter_bytes_per_ns;
};

/* One op of the virtual cluster. */
struct nbox_op {
	uint32_t struct_size;
	uint32_t kind;           /* enum nbox_op_kind */
	uint32_t algo;           /* enum nbox_algo */
	uint32_t n_ranks;        /* of the communicator */
	uint32_t n_nodes;        /* it spans */
	uint32_t ranks_per_node; /* 1 when uneven */
	uint32_t root;
	uint32_t elem_bytes;
	uint64_t bytes;  /* count x element size of the call: AllReduce, Broadcast,
			  * Reduce: the buffer; AllGather: one rank's contribution;
			  * ReduceScatter: one rank's result; AllToAll, Gather,
			  * Scatter: one pair; SendRecv: the larger of the busiest
			  * real rank's sent and received bytes */
	uint64_t number; /* of the op in the run: stream number for chance */
	const struct nbox_net *net;
	/* Whether a world rank takes part: for what-ifs that name some. */
	int (*has_rank)(const struct nbox_op *op, uint32_t world_rank);
	const void *host; /* private to the host */
	uint32_t n_peers; /* SendRecv: others that a real rank sends to, or receives from; the most
			   */
	double window_ns; /* for extra(): of an all-to-all, by AllToAll or by sends and receives,
			   * how long its ranks computed just before it, the least; < 0: not known
			   */
	/* For plan(): what the job's own NCCL took for this op at the virtual size: enum nbox_algo
	 * (a ring is NBOX_RING for every kind), enum nbox_proto, channels. took_lanes 0: not known
	 */
	uint32_t took_algo, took_proto, took_lanes;
};

/* A link of a message's path. */
struct nbox_link {
	double latency_ns, bytes_per_ns;
	uint32_t flows; /* lanes of this op that use it at a time, >= 1 */
};

/* One message of an op. src and dst are world ranks. */
struct nbox_message {
	uint32_t struct_size;
	uint32_t src, dst;
	uint32_t hop; /* enum nbox_hop */
	uint32_t lane;
	uint32_t flows; /* messages that share the sender's port at a time, >= 1 */
	uint64_t bytes;
	uint64_t index; /* on its connection */
	/* Where a scheduler made the op (struct nbox_plan); else n_links is 0. */
	const struct nbox_link *links; /* of its path, in order */
	uint32_t n_links;
	uint32_t proto;           /* enum nbox_proto */
	double wire_bytes;        /* that cross the links: LL has 2 x bytes */
	double step_ns;           /* of sender and receiver, besides the links */
	double lane_bytes_per_ns; /* most that one lane carries, in wire bytes; 0: no limit */
};

/* A message occupies its link for occupancy_ns and arrives latency_ns after
 * that; the next one on the link starts when the occupancy is over. */
struct nbox_delay {
	double latency_ns, occupancy_ns;
};

/* A stretch of computation of one rank: the time between two of its edges (an op's arrival, a wait
 * for an op or an event). */
struct nbox_segment {
	uint32_t struct_size;
	uint32_t rank;   /* world rank, virtual or real */
	uint64_t number; /* of the segment: stream number for chance; the same for all
			  * ranks that share the template */
	double start_ns; /* when it begins at the rank: virtual time since the run's first op */
	double from_ns, until_ns; /* when the what-if holds then, or next after */
};

/* World ranks, sorted, each once. */
struct nbox_ranks {
	const uint32_t *ranks; /* the host's, for the life of the model, which asks once */
	size_t n;
};

static inline int nbox_ranks_have(const struct nbox_ranks *r, uint32_t world_rank)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->ranks[mid] < world_rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->n && r->ranks[low] == world_rank;
}

struct nbox_kv {
	const char *key, *value;
};

/* The fabric under one op, as schedulers see it. Where its nodes differ: the weakest. A domain is
 * what NCCL calls a node: the ranks that NVLink or PCIe joins, over several nodes in an NVL72. */
enum nbox_intra { NBOX_NVSWITCH, NBOX_NVLINK, NBOX_PCIE };
enum nbox_cpu { NBOX_INTEL, NBOX_AMD, NBOX_ARM, NBOX_OTHER_CPU };
enum nbox_distance { NBOX_PIX, NBOX_PXB, NBOX_PHB, NBOX_SYS }; /* of a GPU from its NIC */

struct nbox_fabric {
	uint32_t struct_size;
	uint32_t n_domains, ranks_per_domain; /* of the op; 0: uneven */
	uint32_t most_ranks_per_domain;
	uint32_t sm_min, sm_max; /* ten times the compute capability: 80, 90, 100 */
	uint32_t intra, cpu, distance;
	uint32_t has_nvls; /* the switch reduces and multicasts */
	uint32_t has_gdr;  /* NICs read and write GPU memory */
	uint32_t n_nics;   /* of a domain, near to the op's ranks; a GPU's own come first */
	double gpu_bytes_per_ns, gpu_latency_ns;
	double pcie_bytes_per_ns;        /* between a GPU and its NIC; 0: no limit */
	double nic_bytes_per_ns;         /* of one NIC */
	double net_latency_ns;           /* from NIC to NIC */
	double nic_payload_bytes_per_ns; /* of an op's bytes, at most; 0: as nic_bytes_per_ns */
	uint32_t has_no_order; /* bytes of a message arrive in any order: LL and LL128 cannot be */
};

struct nbox_candidate {
	uint32_t algo, proto;
	double cost_ns;      /* by the scheduler's own rule; negative: not possible, because */
	const char *why_not; /* static */
};

#define NBOX_CANDIDATES_MAX 32

/* Which messages an op has. */
struct nbox_plan {
	uint32_t struct_size;
	uint32_t algo, proto;
	uint32_t n_lanes; /* NCCL's channels */
	uint32_t n_threads, n_slices;
	uint32_t n_rails;     /* lane i leaves a domain at its rank i % n_rails x ranks / n_rails */
	uint64_t chunk_bytes; /* most bytes of a step of one lane */
	double wire_factor;   /* wire bytes / bytes: 2, 16/15, 1 */
	double base_ns;       /* once an op */
	double step_ns[2];    /* of one message besides its links, by NBOX_INTRA, NBOX_INTER */
	double lane_bytes_per_ns[2]; /* most that a lane carries, in wire bytes; 0: no limit */
	double whole_ns; /* the op's time, where algo is no schedule of the host; else negative */
	double estimate_ns; /* what the scheduler's own rule says of the choice; negative: nothing
			     */
	uint32_t n_candidates;
	struct nbox_candidate candidates[NBOX_CANDIDATES_MAX];
	const char *source;  /* of the rule: "NCCL 2.28.9"; static or the model's */
	uint64_t lane_bytes; /* of the call that a lane has, a whole number of elements; the last
			      * ones have what is left; 0: even shares */
	uint32_t n_first;    /* of a tree: lanes of its first tree, at least half; the others have
			      * the second; 0: half */
	/* Of a message inside a domain, what a rank holds back before it passes it on; 0: all */
	uint32_t intra_line_bytes;
	/* Where costs do not come from the scheduler's own rule but from a record of decisions,
	 * what that rule says: its name as @source has it (NULL: nothing), its cost of each
	 * candidate (negative: not possible) and its choice (UINT32_MAX: none) */
	const char *own_source;
	double own_cost_ns[NBOX_CANDIDATES_MAX];
	uint32_t own_algo, own_proto, own_lanes;
	/* Where the op has took_lanes: whether this is the plan of what NCCL took, or why not
	 * (static) */
	uint32_t is_taken;
	const char *why_not_taken;
	/* What a record of decisions says NCCL takes, whatever it took: enum nbox_algo (a ring is
	 * NBOX_RING for every kind), enum nbox_proto, channels, and the record's name. told_lanes
	 * 0: there is none, or it does not have such an op */
	uint32_t told_algo, told_proto, told_lanes;
	uint32_t told_of_comm; /* channels of the communicator, by that record; 0: not known */
	const char *told_by;
};

/* Lent by the host for the life of the model. */
struct nbox_host {
	uint32_t struct_size;
	uint64_t seed;
	/* A uniform number in [0,1): a function of the seed and the three keys. */
	double (*chance)(const struct nbox_host *host, uint64_t a, uint64_t b, uint64_t c);
	/* Writes the sentence that goes with an answer of -1: say key, value, remedy. */
	void (*error)(const struct nbox_host *host, const char *fmt, ...)
		__attribute__((format(printf, 2, 3)));
	/* Strict parsers with units ("5us", "400Gbps", "4M", "1.5"): 0, or -1 with the
	 * sentence written through error(). A value of NULL is 0 and leaves *ret as it
	 * is, so that parse_time(host, "x", nbox_value(kv, n_kv, "x"), &x) keeps the
	 * default in x where the user said nothing. */
	int (*parse_time)(const struct nbox_host *h, const char *key, const char *v,
			  double *ret_ns);
	int (*parse_bandwidth)(const struct nbox_host *h, const char *key, const char *v,
			       double *ret_bytes_per_ns);
	int (*parse_bytes)(const struct nbox_host *h, const char *key, const char *v,
			   uint64_t *ret);
	int (*parse_ratio)(const struct nbox_host *h, const char *key, const char *v, double *ret);
	int (*parse_count)(const struct nbox_host *h, const char *key, const char *v,
			   uint64_t *ret);
	/* @choices: "intra|inter|all"; *ret is the number of the one that @v is. Case,
	 * '-' and '_' do not matter. */
	int (*parse_choice)(const struct nbox_host *h, const char *key, const char *v,
			    const char *choices, uint32_t *ret);
	void *ctx;
	/* The ranks of the keys rank ("17", "16-23", "1+5") and node (all ranks of those nodes),
	 * which the model lists among its parameters with the units "ranks" and "nodes". Ranks
	 * outside the world and both keys at once are refused. ret->n is 0 where the user gave
	 * neither. */
	int (*parse_ranks)(const struct nbox_host *h, const struct nbox_kv *kv, size_t n_kv,
			   struct nbox_ranks *ret);
	/* In create(): a sentence that the user should read before the run. One a model, the last.
	 */
	void (*warn)(const struct nbox_host *host, const char *fmt, ...)
		__attribute__((format(printf, 2, 3)));
	/* What the job has in its environment, such as NCCL_ALGO; NULL: not set. @name: a literal.
	 * Before a job has joined, and without one, it is nbox's own environment. A scheduler is
	 * created again when a job has joined. */
	const char *(*variable)(const struct nbox_host *host, const char *name);
	/* Of the NCCL that the job has loaded: "2.28.9"; "": there is no job yet, or its NCCL is
	 * not known. */
	const char *nccl_version;
};

/* For parse_choice(): in the order of enum nbox_op_kind. */
#define NBOX_OP_KINDS \
	"allreduce|allgather|reducescatter|broadcast|reduce|alltoall|gather|scatter|sendrecv"

/* The messages of the model under a decorator. Answers as message() does; message
 * is NULL when that model answers whole ops only: what works on messages alone must
 * refuse such a model in create(). */
struct nbox_next {
	int (*message)(const struct nbox_next *next, const struct nbox_op *op,
		       const struct nbox_message *msg, struct nbox_delay *ret);
	void *ctx;
};

/* The value of @key, or NULL when the user did not give it. */
static inline const char *nbox_value(const struct nbox_kv *kv, size_t n_kv, const char *key)
{
	size_t i;

	for (i = 0; i < n_kv; i++) {
		const char *a = kv[i].key, *b = key;

		for (; *a && *a == *b; a++, b++)
			;
		if (*a == *b)
			return kv[i].value;
	}
	return NULL;
}

struct nbox_param {
	const char *name;
	const char *unit;         /* "time", "bandwidth", "bytes", "ratio", "count", "choice",
				   * "ranks", "nodes" (parse_ranks()), "text" */
	const char *default_text; /* for people; NULL: must be given */
	const char *help;
};

enum nbox_model_flags {
	NBOX_DECORATOR = 1,    /* wraps another model: create() gets next */
	NBOX_UNIFORM = 2,      /* message() depends on bytes, hop and flows only, not on who,
				* which or when: symmetry may be used */
	NBOX_STEADY = 4,       /* message() and op() do not depend on op->number (no chance, no
				* schedule in time): an answer may be kept for the next equal
				* op. NBOX_UNIFORM implies it. extra() and segment() are
				* always asked again. */
	NBOX_NO_MESSAGES = 8,  /* of a decorator: as it is set, it leaves messages alone;
				* the host does not ask its message() */
	NBOX_NO_SEGMENTS = 16, /* the same of computation and segment() */
	NBOX_BY_RANKS = 32,    /* of a decorator: as NBOX_UNIFORM, but message() looks also at
				* whether src and dst are among the ranks of parse_ranks() */
	NBOX_OVER_TIME = 64,   /* of a decorator: segment() is asked at any time, and looks itself
				* at from_ns and until_ns */
	NBOX_AHEAD = 128,      /* of a decorator: what extra() takes away has crossed the network
				* before the op begins */
};

struct nbox_delaymodel {
	uint32_t abi;                    /* NBOX_DELAYMODEL_ABI */
	uint32_t struct_size;            /* sizeof(struct nbox_delaymodel) */
	const char *name;                /* what users type */
	const char *summary;             /* one line */
	uint32_t flags;                  /* enum nbox_model_flags */
	const struct nbox_param *params; /* ends with a NULL name */

	/* The host has checked that every key is known and every required one there.
	 * @next is NULL unless NBOX_DECORATOR. Return: 0, or -1 after host->error(). */
	int (*create)(const struct nbox_host *host, const struct nbox_next *next,
		      const struct nbox_kv *kv, size_t n_kv, void **ret_model);
	void (*destroy)(void *model);

	/* A model has op or message, or both; a decorator has any of message, extra
	 * and segment. All: Return 0; 1: I have no answer for this op (the host tries
	 * the other one, then refuses; a decorator's 1 means nothing to add); -1: error,
	 * after host->error(). The host asks op() first, but where a decorator works on
	 * messages it asks message() only. */

	/* Models: how long the whole op takes when its ranks arrive together. */
	int (*op)(void *model, const struct nbox_op *op, double *ret_ns);
	/* How long one message takes. A decorator asks next->message() first. */
	int (*message)(void *model, const struct nbox_op *op, const struct nbox_message *msg,
		       struct nbox_delay *ret);
	/* Decorators: what the op takes beyond @so_far_ns. @from_messages: 1 when
	 * @so_far_ns was built from message() (through this decorator), 0 when from
	 * op(). Negative answers shorten; the host never goes below 0 in all. */
	int (*extra)(void *model, const struct nbox_op *op, double so_far_ns, int from_messages,
		     double *ret_extra_ns);
	/* Decorators: how long rank seg->rank takes for computation that takes its
	 * template @ns (by the decorators before); >= 0. 1: @ns stays. */
	int (*segment)(void *model, const struct nbox_segment *seg, double ns, double *ret_ns);
	/* The flags of this instance, where its parameters decide; NULL: .flags. A
	 * decorator is uniform when it keeps what is uniform so. */
	uint32_t (*traits)(void *model);

	/* Schedulers have plan() and neither op() nor message(): which messages the op has. What
	 * one costs, a second model says, by message(). @op's algo is what the user asked for, or
	 * NBOX_ALGO_ANY. Return: as op(). */
	int (*plan)(void *model, const struct nbox_op *op, const struct nbox_fabric *fabric,
		    struct nbox_plan *ret);
};

#define NBOX_ALGO_ANY UINT32_MAX

/* Fills the first two fields. */
#define NBOX_DELAYMODEL_HEAD \
	.abi = NBOX_DELAYMODEL_ABI, .struct_size = sizeof(struct nbox_delaymodel)

#define NBOX_EXPORT __attribute__((visibility("default")))

#endif
