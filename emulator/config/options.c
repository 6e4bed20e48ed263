/* See options.h. */
#include "config/options.h"

#include <stddef.h>

static const char *const exchange_names[] = {"none", "messages", "payload", NULL};
static const char *const data_names[] = {"mirror", "fill", "identity", "none", NULL};
static const char *const split_names[] = {"template", "same", "node", NULL};
static const char *const link_names[] = {"shm", "tcp", "rdma", NULL};
static const char *const work_names[] = {"reduce", "none", NULL};
static const char *const memory_names[] = {"auto", "host", "device", NULL};
static const char *const log_names[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE", NULL};

const struct config_option config_options[CONFIG_OPTIONS] = {
	[CONFIG_NODES] = {"nodes", "NBOX_NODES", "cluster.nodes", KIND_COUNT, "2", "N",
			  "nodes of the virtual cluster", NULL},
	[CONFIG_GPUS_PER_NODE] = {"gpus-per-node", "NBOX_GPUS_PER_NODE", "cluster.gpus_per_node",
				  KIND_COUNT, "8", "G", "ranks on each node", NULL},
	[CONFIG_WORLD] = {"world", "NBOX_WORLD", "cluster.world", KIND_COUNT, NULL, "N",
			  "ranks in all; checked against nodes x gpus-per-node, or gives the nodes",
			  NULL},
	[CONFIG_REAL] = {"real", "NBOX_REAL", "cluster.real", KIND_RANKS, NULL, "RANKS",
			 "world ranks that have a process, such as 0-7 or 0,8; else those of the "
			 "node that --as-node names",
			 NULL},
	[CONFIG_AS_NODE] = {"as-node", "NBOX_AS_NODE", "cluster.as_node", KIND_TEXT, "first",
			    "NODE",
			    "the node that the real ranks are: first, last, or its number from 0",
			    NULL},
	[CONFIG_INTRA_LATENCY] = {"intra-latency", "NBOX_INTRA_LATENCY", "network.intra.latency",
				  KIND_TIME, "1us", "TIME", "of a hop inside a node", NULL},
	[CONFIG_INTRA_BANDWIDTH] = {"intra-bandwidth", "NBOX_INTRA_BANDWIDTH",
				    "network.intra.bandwidth", KIND_BANDWIDTH, "400GB/s", "RATE",
				    "of a rank's port inside its node", NULL},
	[CONFIG_INTER_LATENCY] = {"inter-latency", "NBOX_INTER_LATENCY", "network.inter.latency",
				  KIND_TIME, "5us", "TIME", "of a hop between nodes", NULL},
	[CONFIG_INTER_BANDWIDTH] = {"inter-bandwidth", "NBOX_INTER_BANDWIDTH",
				    "network.inter.bandwidth", KIND_BANDWIDTH, "50GB/s", "RATE",
				    "of a rank's port between nodes", NULL},
	[CONFIG_LAYOUT] =
		{"layout", "NBOX_LAYOUT", "layout", KIND_LIST, NULL, "AXIS=SIZE,...",
		 "parallel axes of the job, fastest first, such as tp=8,pp=4,dp=16, or with "
		 "order=tp-dp-pp; says who is in which communicator; may be repeated",
		 NULL},
	[CONFIG_MODEL] = {"model", "NBOX_MODEL", "model", KIND_TEXT, "none", "M[:K=V,...]",
			  "delay model: how long ops and messages take", NULL},
	[CONFIG_WHAT_IF] = {"what-if", "NBOX_WHAT_IF", "what_if", KIND_LIST, NULL, "W[:K=V,...]",
			    "one change to the virtual cluster, innermost first; may be repeated",
			    NULL},
	[CONFIG_EXCHANGE] = {"exchange", "NBOX_EXCHANGE", "exchange", KIND_CHOICE, "none", "E",
			     "what crosses the link: ", exchange_names},
	[CONFIG_DATA] = {"data", "NBOX_DATA", "data", KIND_CHOICE, "mirror", "D",
			 "what virtual ranks contribute: ", data_names},
	[CONFIG_DATA_FOR] =
		{"data-for", "NBOX_DATA_FOR", "data_for", KIND_MAP, NULL, "WHAT=DATA",
		 "the same for a kind of collective or the communicators along an axis of "
		 "the layout, such as allgather=identity, dp=fill or dp/allreduce=none; "
		 "may be repeated",
		 NULL},
	[CONFIG_SPLIT] = {"split", "NBOX_SPLIT", "split", KIND_CHOICE, "template", "P",
			  "color of a virtual rank in a split: its template's, the lowest real "
			  "member's, or its template's on its own node only: ",
			  split_names},
	[CONFIG_ALGO] =
		{"algo", "NBOX_ALGO", "schedule.algo", KIND_MAP, NULL, "KIND=ALGO",
		 "algorithm of a kind of collective, such as allreduce=tree; may be repeated",
		 NULL},
	[CONFIG_CHANNELS] = {"channels", "NBOX_CHANNELS", "schedule.channels", KIND_COUNT, "1", "N",
			     "lanes that an op is spread over", NULL},
	[CONFIG_CHUNK] = {"chunk", "NBOX_CHUNK", "schedule.chunk", KIND_BYTES, "1MiB", "BYTES",
			  "most bytes of one message", NULL},
	[CONFIG_LINK] = {"link", "NBOX_LINK", "link.kind", KIND_CHOICE, "shm", "L",
			 "between workers and nboxd, where no --addr says it: ", link_names},
	[CONFIG_ADDR] =
		{"addr", "NBOX_ADDR", "link.addr", KIND_LIST, NULL, "ADDR",
		 "where nboxd listens: shm:/path, tcp:host:port or rdma:host:port "
		 "(rdma:auto:0: at an RDMA device); may be repeated: workers use the first, "
		 "or the first of --link",
		 NULL},
	[CONFIG_TOKEN] = {"token", "NBOX_TOKEN", "link.token", KIND_TEXT, NULL, "TEXT",
			  "what a worker must show, at most 32 bytes; needed beyond this host",
			  NULL},
	[CONFIG_STORE] = {"store", "NBOX_STORE", "store", KIND_TEXT, "none", "HOST:PORT",
			  "where nboxd serves torch's TCPStore, port 0: any; none: it does not",
			  NULL},
	[CONFIG_IB_HCA] = {"ib-hca", "NBOX_IB_HCA", "link.ib.hca", KIND_TEXT, NULL, "DEVICE",
			   "rdma: device, such as mlx5_0; else the one that the address belongs to",
			   NULL},
	[CONFIG_IB_PORT] = {"ib-port", "NBOX_IB_PORT", "link.ib.port", KIND_COUNT, NULL, "N",
			    "rdma: port of the device; else any that is active", NULL},
	[CONFIG_IB_GID_INDEX] = {"ib-gid-index", "NBOX_IB_GID_INDEX", "link.ib.gid_index",
				 KIND_COUNT, NULL, "N",
				 "rdma: its GID; else the first IPv4 one (RoCE v2)", NULL},
	[CONFIG_IB_TC] = {"ib-tc", "NBOX_IB_TC", "link.ib.tc", KIND_COUNT, NULL, "N",
			  "rdma: traffic class, 0 to 255", NULL},
	[CONFIG_IB_TIMEOUT] =
		{"ib-timeout", "NBOX_IB_TIMEOUT", "link.ib.timeout", KIND_COUNT, NULL, "N",
		 "rdma: ack timeout, 4.096 us x 2^N; 18 (1.07 s) when not given: a host that is dead is noticed within 44 s",
		 NULL},
	[CONFIG_IB_RETRY_CNT] = {"ib-retry-cnt", "NBOX_IB_RETRY_CNT", "link.ib.retry_cnt",
				 KIND_COUNT, NULL, "N",
				 "rdma: retries before the link is lost, 0 to 7; 7", NULL},
	[CONFIG_IB_MTU] = {"ib-mtu", "NBOX_IB_MTU", "link.ib.mtu", KIND_COUNT, NULL, "N",
			   "rdma: 256 to 4096, if the path has more", NULL},
	[CONFIG_IB_QPS] = {"ib-qps", "NBOX_IB_QPS", "link.ib.qps", KIND_COUNT, NULL, "N",
			   "rdma: queue pairs of a link, 1 to 4; 1", NULL},
	[CONFIG_IB_INLINE] = {"ib-inline", "NBOX_IB_INLINE", "link.ib.inline", KIND_BYTES, NULL,
			      "BYTES", "rdma: most that a SEND carries inline; 256B", NULL},
	[CONFIG_IB_RING] = {"ib-ring", "NBOX_IB_RING", "link.ib.ring", KIND_BYTES, NULL, "BYTES",
			    "rdma: where the other end writes bodies, for each link; 4MiB", NULL},
	[CONFIG_IB_MEMORY] = {"ib-memory", "NBOX_IB_MEMORY", "link.ib.memory", KIND_BYTES, NULL,
			      "BYTES", "rdma: most memory kept registered for bodies sent; 1GiB",
			      NULL},
	[CONFIG_IB_POLL] = {"ib-poll", "NBOX_IB_POLL", "link.ib.poll", KIND_TEXT, NULL, "P",
			    "rdma: events, or busy: never sleep (for cores of its own)", NULL},
	[CONFIG_SEED] = {"seed", "NBOX_SEED", "seed", KIND_SEED, "1", "N",
			 "of all chance in the run", NULL},
	[CONFIG_OUT] = {"out", "NBOX_OUT", "out", KIND_TEXT, NULL, "DIR",
			"results directory; made when missing", NULL},
	[CONFIG_LOG] = {"log", "NBOX_DEBUG", "log", KIND_CHOICE, "WARN", "LEVEL",
			"log lines of this level and above: ", log_names},
	[CONFIG_POLL] = {"poll", "NBOX_POLL", "tuning.poll", KIND_TIME, "200us", "TIME",
			 "longest that nboxd looks for frames before it sleeps", NULL},
	[CONFIG_PAYLOAD_WORK] = {"payload-work", "NBOX_PAYLOAD_WORK", "tuning.payload_work",
				 KIND_CHOICE, "reduce", "W",
				 "exchange payload: the work of a virtual peer that nboxd does: ",
				 work_names},
	[CONFIG_PAYLOAD_MEMORY] =
		{"payload-memory", "NBOX_PAYLOAD_MEMORY", "tuning.payload_memory", KIND_CHOICE,
		 "auto", "M",
		 "exchange payload: where a worker's bodies lie; device: in its GPU, over link "
		 "rdma (the work stays the CPU's): ",
		 memory_names},
	[CONFIG_SETTLE] = {"settle", "NBOX_SETTLE", "tuning.settle", KIND_TIME, "250ms", "TIME",
			   "a communicator is complete when no member came for this long", NULL},
	[CONFIG_TIMEOUT] = {"timeout", "NBOX_TIMEOUT", "tuning.timeout", KIND_TIME, "1800s", "TIME",
			    "longest wait for a member before the communicator is aborted", NULL},
};

bool option_is_list(enum config_id id)
{
	return config_options[id].kind == KIND_LIST || config_options[id].kind == KIND_MAP;
}
