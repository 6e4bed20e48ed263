/* See launcher.h. */
#include "nbox/run/launcher.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "nbox/run/env.h"

#define PORT_FIRST 20000
#define PORTS 10000

/* The port is bound later, by the job. So it is taken, if possible, from below the range from which
 * the kernel gives ports to other programs. */
int run_free_port(void)
{
	CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	uint16_t number;

	for (int i = 0; fd >= 0 && i < 16; i++) {
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
			break;
		a.sin_port = htons((uint16_t)(PORT_FIRST + number % PORTS));
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
			return ntohs(a.sin_port);
	}
	a.sin_port = 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return 29500;
	return ntohs(a.sin_port);
}

static const char *get_env(const char *name)
{
	return getenv(name);
}

/* How many GPUs torchrun's `gpu` and `auto` will find. 0: unknown. */
static uint32_t count_devices(const struct run *run)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	uint32_t n = 0;
	DIR *d;

	if (run->device != RUN_DEVICE_CUDA) /* the stand-in shows as many as a node has ranks */
		return (uint32_t)strtoul(options[CONFIG_GPUS_PER_NODE].default_text, NULL, 10);
	if (visible) {
		for (const char *p = visible; *p; p++)
			n += *p != ',' && (p == visible || p[-1] == ',');
		return n;
	}
	d = opendir("/proc/driver/nvidia/gpus");
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* The number of an option that was given, before config_finish(); 0: not given, or no number,
 * which config_finish() will say. */
static uint32_t given(const struct config *c, enum option_id id)
{
	unsigned long n;
	char *end;

	if (!config_is_set(c, id))
		return 0;
	n = strtoul(c->values[id].items[0].text, &end, 10);
	return *end || n > 65536 ? 0 : (uint32_t)n;
}

static int set(struct config *c, enum option_id id, uint32_t n, struct err *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return config_set(c, id, SOURCE_LAUNCHER, text) < 0 ? err_set(err, ENOMEM, "out of memory")
							    : 0;
}

static int take_nodes(struct run *run, struct err *err)
{
	const struct launcher_line *l = &run->line;
	struct config *c = run->config;
	uint32_t nodes = given(c, CONFIG_NODES);
	char where[256];

	if (l->n_nodes > 1 && !config_is_set(c, CONFIG_NODES)) {
		if (l->is_range)
			return err_set(err, EINVAL,
				       "%s may run on several numbers of machines: say --nodes "
				       "before the command",
				       l->name);
		if (!config_is_set(c, CONFIG_WORLD))
			return set(c, CONFIG_NODES, l->n_nodes, err);
	} else if (l->n_nodes > 1 && !l->is_range && nodes && nodes != l->n_nodes) {
		return err_set(err, EINVAL,
			       "%s is told of %u machines, but %s says %u nodes: make them equal, "
			       "or leave the first away",
			       l->name, l->n_nodes,
			       config_where(c, CONFIG_NODES, 0, where, sizeof(where)), nodes);
	}
	return 0;
}

/* --as-node K where the launcher says that it is on machine K. */
static int take_rank(struct run *run, struct err *err)
{
	struct config *c = run->config;

	if (run->line.node_rank <= 0 || config_is_set(c, CONFIG_AS_NODE) ||
	    config_is_set(c, CONFIG_REAL))
		return 0;
	return set(c, CONFIG_AS_NODE, (uint32_t)run->line.node_rank, err);
}

int run_launcher_read(struct run *run, struct err *err)
{
	struct config *c = run->config;
	uint32_t gpus = given(c, CONFIG_GPUS_PER_NODE);
	int r = launcher_line_read(run->command, get_env, &run->line, err);

	if (r < 0 || (run->line.kind == LAUNCHER_NONE && !run->is_launcher))
		return r;
	run->is_launcher = true;
	if (run->n_procs)
		return err_set(err, EINVAL,
			       "--procs is for plain programs: %s starts the ranks itself",
			       run->line.kind ? run->line.name : "a launcher");
	if (run->line.kind == LAUNCHER_NONE) { /* --launcher: nothing is known of it */
		if (!gpus)
			return err_set(err, EINVAL,
				       "--launcher: say with --gpus-per-node how many ranks %s "
				       "starts on this machine",
				       run->command[0]);
		run->n_launcher_ranks = gpus;
		return 0;
	}
	if ((r = take_nodes(run, err)) < 0 || (r = take_rank(run, err)) < 0)
		return r;
	r = launcher_line_procs(&run->line, given(c, CONFIG_NODES), gpus, count_devices(run),
				&run->n_launcher_ranks, err);
	if (r < 0)
		return r;
	if (!config_is_set(c, CONFIG_GPUS_PER_NODE) && !config_is_set(c, CONFIG_REAL))
		return set(c, CONFIG_GPUS_PER_NODE, run->n_launcher_ranks, err);
	return 0;
}

int run_launcher_finish(struct run *run, struct err *err)
{
	const struct config *c = run->config;
	const char *here = getenv("SLURMD_NODENAME"),
		   *name = run->line.kind ? run->line.name : run->command[0];
	char where[256];

	if (!run->is_launcher)
		return 0;
	if (config_is_set(c, CONFIG_REAL) && c->n_real != run->n_launcher_ranks)
		return err_set(err, EINVAL, "%s starts %u rank%s here, but %zu are real (%s)", name,
			       run->n_launcher_ranks, run->n_launcher_ranks == 1 ? "" : "s",
			       c->n_real, config_where(c, CONFIG_REAL, 0, where, sizeof(where)));
	if (!config_is_set(c, CONFIG_REAL) && c->topology.gpus_per_node != run->n_launcher_ranks)
		return err_set(
			err, EINVAL,
			"%s starts %u rank%s here, but a node has %u (%s): make them equal, or "
			"name with --real those that have a process",
			name, run->n_launcher_ranks, run->n_launcher_ranks == 1 ? "" : "s",
			c->topology.gpus_per_node,
			config_where(c, CONFIG_GPUS_PER_NODE, 0, where, sizeof(where)));
	if (run->line.kind == LAUNCHER_NONE)
		return 0;
	if (launcher_line_local(&run->line, run->n_launcher_ranks, run_free_port(), here,
				&run->local_command, &run->changed) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int run_launcher_env(const struct run *run)
{
	static const char *const of_other_machines[] = {"PET_NNODES",       "PET_NODE_RANK",
							"PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT",
							"PET_RDZV_ID",      "PET_RDZV_CONF",
							"PET_MASTER_ADDR",  "PET_MASTER_PORT",
							"NBOX_REAL",        "NBOX_AS_NODE",
							"NBOX_WORLD"};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(of_other_machines); i++)
		unsetenv(of_other_machines[i]);
	if (run->line.kind != LAUNCHER_TORCHRUN)
		return 0;
	/* else every agent of this machine listens at 29500; options on the line come before these
	 */
	r = env_set("PET_MASTER_ADDR", "127.0.0.1");
	return r < 0 ? r : env_set("PET_MASTER_PORT", "%d", run_free_port());
}
