/* What nbox oracle reads of others: NCCL's log, a line of nbox-oracle, a topology file. */
#include <stdlib.h>
#include <string.h>

#include "fabric/read/net-devices.h"
#include "fuzz.h"
#include "nbox/oracle/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = strndup((const char *)data, n), last[64];
	struct nccl_log *log = malloc(sizeof(*log));
	struct net_device devices[NET_DEVICES_MAX];
	struct oracle_costs costs;
	struct err err = {""};
	uint16_t ranks[NCCL_LOG_GPUS_MAX];
	size_t n_devices;

	if (!text || !log)
		abort();
	nccl_log_parse((const char *)data, n, log);
	for (uint32_t c = 0; c < NCCL_LOG_CHANNELS_MAX; c += 9)
		for (uint32_t g = 1; g <= NCCL_LOG_GPUS_MAX; g += 7)
			if (oracle_ring_of(log, c, g, ranks) > g ||
			    oracle_tree_of(log, c, g, ranks) > g)
				abort();
	for (uint32_t a = 0; a < N_ALGOS; a++)
		if (nccl_log_channels(log, a, a % N_PROTOS, n) < DECISIONS_NOT_KNOWN)
			abort();
	nccl_log_last(text, last, sizeof(last));
	if (net_devices_parse("t", text, devices, &n_devices, &err) < 0 && !err.text[0])
		abort();
	if (oracle_costs_parse(text, &costs) == 0 &&
	    costs.n_algos * costs.n_protos > sizeof(costs.us) / sizeof(costs.us[0]))
		abort();
	free(text);
	free(log);
	return 0;
}
