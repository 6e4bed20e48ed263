/* NCCL's algorithms and protocols in words for people. "?" for unknown ones. */
#pragma once

#include "nccl-plugin/plugin.h"

static inline const char *plugin_algorithm_name(uint32_t algorithm)
{
	static const char *const names[PLUGIN_N_ALGORITHMS] = {
		[PLUGIN_TREE] = "tree",
		[PLUGIN_RING] = "ring",
		[PLUGIN_COLLNET_DIRECT] = "CollNet direct",
		[PLUGIN_COLLNET_CHAIN] = "CollNet chain",
		[PLUGIN_NVLS] = "NVLS",
		[PLUGIN_NVLS_TREE] = "NVLS tree",
		[PLUGIN_PAT] = "PAT",
	};

	return algorithm < PLUGIN_N_ALGORITHMS ? names[algorithm] : "?";
}

static inline const char *plugin_protocol_name(uint32_t protocol)
{
	static const char *const names[PLUGIN_N_PROTOCOLS] = {
		[PLUGIN_LL] = "LL", [PLUGIN_LL128] = "LL128", [PLUGIN_SIMPLE] = "Simple"};

	return protocol < PLUGIN_N_PROTOCOLS ? names[protocol] : "?";
}
