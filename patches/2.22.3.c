/* NCCL 2.22.3. New: ncclPeerInfo.cuMemSupport, and allGatherInfo's cpuArch and cpuVendor. */
#include "tables.h"

const struct nccl_records records_2_22_3 = {
	.name = "2.22.3",
	.first = NCCL_CODE(2, 22, 3),
	.last = NCCL_CODE(2, 22, 3),
	.tried = "2.22.3, its host code on CPUs, 2026-11-24",
	.has_two_heads = true, /* bootstrap.cc, bootstrapConnect */

	/* struct ncclBootstrapHandle, include/bootstrap.h */
	.id_magic = {0, 8},    /* magic */
	.id_address = {8, 28}, /* addr */

	/* struct extInfo, bootstrap.cc */
	.check_in =
		{
			.bytes = 64,
			.rank = {0, 4},           /* rank */
			.n_ranks = {4, 4},        /* nranks */
			.root_address = {8, 28},  /* extAddressListenRoot */
			.ring_address = {36, 28}, /* extAddressListen */
		},
	.next_bytes = 28, /* union ncclSocketAddress, include/socket.h */

	/* bootstrap.cc, bootstrapInit and bootstrapSplit */
	.n_contacts = 3,
	.contacts =
		{
			{.bytes = 28, .peer_address = {0, 28}}, /* peerCommAddresses -> nbox's */
			{.bytes = 28},                          /* peerProxyAddresses */
			{.bytes = 8},                           /* peerProxyAddressesUDS */
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
		},

	/* struct allGatherInfo, init.cc, initTransportsRank; topoRanks in it: struct ncclTopoRanks,
	   include/graph.h */
	.graph =
		{
			.bytes = 1228,
			.n_graphs = 6, /* NCCL_NUM_ALGORITHMS, include/nccl_common.h */
			.graph_bytes = 32,
			.pattern = {0, 4},       /* graphInfo[a].pattern */
			.n_channels = {4, 4},    /* graphInfo[a].nChannels */
			.same_channels = {8, 4}, /* graphInfo[a].sameChannels */
			.bw_intra = {12, 4},     /* graphInfo[a].bwIntra */
			.bw_inter = {16, 4},     /* graphInfo[a].bwInter */
			.type_intra = {20, 4},   /* graphInfo[a].typeIntra */
			.type_inter = {24, 4},   /* graphInfo[a].typeInter */
			.cross_nic = {28, 4},    /* graphInfo[a].crossNic */
			.arrays_at = 192, /* topoRanks.ringRecv to .nvlsHeads -> the node's ranks */
			.n_channels_max = 32,         /* MAXCHANNELS, include/device.h */
			.nvls_head_count = {1216, 4}, /* topoRanks.nvlsHeadNum */
		},

	/* init.cc, commGetSplitInfo: colors, then keys */
	.split =
		{
			.n_gathers = 2,
			.bytes = 4,
			.color = {0, 4}, /* colors[rank] */
			.key = {0, 4},   /* keys[rank] */
			.tag = -2,       /* bootstrap.cc, bootstrapSplit */
		},

	.connect_bytes = 128, /* CONNECT_SIZE, include/transport.h */
};
