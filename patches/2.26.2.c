/* NCCL 2.26.2 to 2.26.6. New: rasRankInit.hostHash and .pidHash, in the contact. */
#include "tables.h"

const struct nccl_records records_2_26_2 = {
	.name = "2.26.2",
	.first = NCCL_CODE(2, 26, 2),
	.last = NCCL_CODE(2, 26, 6),
	.tried = "2.26.2, its host code on CPUs, 2026-11-24",

	/* struct ncclBootstrapHandle, include/bootstrap.h */
	.id_magic = {0, 8},    /* magic */
	.id_address = {8, 28}, /* addr */

	/* struct extInfo, bootstrap.cc */
	.check_in =
		{
			.bytes = 172,
			.rank = {0, 4},           /* rank */
			.n_ranks = {4, 4},        /* nranks */
			.root = {8, 4},           /* iroot */
			.n_roots = {12, 4},       /* nroots */
			.root_address = {16, 28}, /* listenRootAddress */
			.ring_address = {44, 28}, /* connectInfo.addr */
		},
	.next_bytes = 128, /* union ringConnectInfo, bootstrap.cc */

	/* struct bootstrapRingData, bootstrap.cc, ringAllInfo */
	.n_contacts = 1,
	.contacts =
		{
			{.bytes = 120, .peer_address = {0, 28}}, /* peerAddress -> nbox's */
		},

	/* struct ncclPeerInfo, include/transport.h; fabricInfo in it: nvmlGpuFabricInfoV_t,
	   include/nvmlwrap.h */
	.peer =
		{
			.bytes = 104,
			.rank = {0, 4},           /* rank -> the virtual one */
			.host_hash = {16, 8},     /* hostHash -> mixed with the node */
			.pid_hash = {24, 8},      /* pidHash */
			.comm = {48, 8},          /* comm -> 0 */
			.cluster_uuid = {64, 16}, /* fabricInfo.clusterUuid -> 0 */
			.clique = {84, 4},        /* fabricInfo.cliqueId */
			.version = {100, 4},      /* version */
		},

	/* struct allGatherInfo, init.cc, initTransportsRank; topoRanks in it: struct ncclTopoRanks,
	   include/graph.h */
	.graph =
		{
			.bytes = 2284,
			.n_graphs = 7, /* NCCL_NUM_ALGORITHMS, include/nccl_common.h */
			.graph_bytes = 32,
			.pattern = {0, 4},       /* graphInfo[a].pattern */
			.n_channels = {4, 4},    /* graphInfo[a].nChannels */
			.same_channels = {8, 4}, /* graphInfo[a].sameChannels */
			.bw_intra = {12, 4},     /* graphInfo[a].bwIntra */
			.bw_inter = {16, 4},     /* graphInfo[a].bwInter */
			.type_intra = {20, 4},   /* graphInfo[a].typeIntra */
			.type_inter = {24, 4},   /* graphInfo[a].typeInter */
			.cross_nic = {28, 4},    /* graphInfo[a].crossNic */
			.arrays_at = 224, /* topoRanks.ringRecv to .nvlsHeads -> the node's ranks */
			.n_channels_max = 64,         /* MAXCHANNELS, include/device.h */
			.nvls_head_count = {2272, 4}, /* topoRanks.nvlsHeadNum */
		},

	/* commSplitInfo, init.cc */
	.split =
		{
			.n_gathers = 1,
			.bytes = 8,
			.color = {4, 4}, /* color */
			.key = {0, 4},   /* key */
			.tag = 1 << 29,  /* BOOTSTRAP_TAG_COMMSPLIT, bootstrap.cc */
		},

	.connect_bytes = 256, /* CONNECT_SIZE, include/transport.h */
	.use_gdr = {128, 4},  /* useGdr, transport/net.cc, sendSetup and recvSetup */
	.later =
		{
			{2, NULL},            /* struct ringConnInfo, transport/generic.cc */
			{4, REFUSED_COLLNET}, /* transport/coll_net.cc */
		},
};
