/* See plan.h. */
#include "nbox/run/plan.h"

#include <stdio.h>
#include <string.h>

void plan_print(const struct run *run)
{
	const struct config *c = run->config;
	uint32_t n = run->is_launcher ? run->n_launcher_ranks : run_count_procs(run);
	char model[1024];

	printf("world      %u ranks: %u node%s x %u%s\n", c->world, c->topology.n_nodes,
	       c->topology.n_nodes == 1 ? "" : "s", c->topology.gpus_per_node,
	       run_is_assumed_size(run) ? " (the number of nodes is not given: --nodes)" : "");
	printf("real       %zu rank%s, the first is %u; %u local process%s%s\n", c->n_real,
	       c->n_real == 1 ? "" : "s", c->real[0], n, n == 1 ? "" : "es",
	       run->is_launcher ? ", started by the command" : "");
	printf("model      %s", config_model(c, model, sizeof(model)));
	if (run->warning[0])
		printf("\nwarning    %s", run->warning);
	if (run->nccl_warning[0])
		printf("\nwarning    %s", run->nccl_warning);
	if (run->hint[0])
		printf("\nwarning    %s", run->hint);
	if (run->network[0])
		printf("\nnetwork    %s", run->network);
	if (c->nccl == NCCL_FULL)
		printf("\nnccl       full: NCCL's own decisions and messages, times by the model"
		       "\n           %s\n           NICs %s",
		       run->nccl, c->net_devices);
	printf("\nexchange   %s over %.*s; data %s; seed %llu\n",
	       wire_exchange_name(c->nccl == NCCL_FULL ? c->traffic : c->exchange),
	       (int)strcspn(c->addr, ":"), c->addr, wire_data_name(c->data),
	       (unsigned long long)c->seed);
	for (size_t i = 0; i < c->n_data_for; i++)
		printf("data       %s\n", c->values[CONFIG_DATA_FOR].items[i].text);
	printf("device     %s\n",
	       run->device == RUN_DEVICE_HOST
		       ? c->nccl == NCCL_FULL
				 ? "host: no NVIDIA GPU here, a stand-in for CUDA and the NCCL of NBOX_NCCL run the job on the CPU"
				 : "host: no NVIDIA GPU here, stand-ins for CUDA and NCCL run the job on the CPU"
		       : "cuda");
	if (run->compute[0])
		printf("compute    %s\n", run->compute);
	printf("command   ");
	for (char **w = run->local_command ? run->local_command : run->command; *w; w++)
		printf(" %s", *w);
	if (run->changed)
		printf("\n           (%s)", run->changed);
	printf("\n\nconfiguration:\n");
	config_write(c, stdout);
}
