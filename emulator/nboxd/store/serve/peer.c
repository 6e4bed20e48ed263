/* See peer.h. */
#include "nboxd/store/serve/peer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nboxd/job/players.h"
#include "nboxd/job/proc-env.h"

void store_peer_end(struct store_peer *p)
{
	shutdown(p->fd, SHUT_RDWR);
}

/* LOCAL_RANK of a process of ours on this host, as it was started. Return: -1: not known. */
static int64_t local_rank_of(uint32_t pid)
{
	struct proc_env e;
	const char *text =
		proc_env_read((pid_t)pid, &e) < 0 ? NULL : proc_env_get(&e, "LOCAL_RANK");

	return text && isdigit((unsigned char)text[0]) ? strtol(text, NULL, 10) : -1;
}

bool store_peer_is_here(const struct store_peer *p)
{
	return strncmp(p->name, "127.", 4) == 0 || strncmp(p->name, "[::1]", 5) == 0;
}

int64_t store_peer_rank(struct store_peer *p)
{
	const struct config *c = p->server->env.config;
	int64_t local;

	if (p->has_rank || p->pid == 0)
		return p->has_rank ? p->rank : -1;
	p->rank = players_rank_of(p->server->env.players, p->pid);
	if (p->rank < 0 && store_peer_is_here(p)) {
		local = local_rank_of(p->pid);
		/* a rank of one node, as torchrun starts them */
		if (local >= 0 && (size_t)local < c->n_real &&
		    c->n_real <= c->topology.gpus_per_node)
			p->rank = c->real[local];
	}
	p->has_rank = p->rank >= 0;
	return p->rank;
}

char *store_peer_text(struct store_peer *p, char *buf, size_t size)
{
	int64_t rank = store_peer_rank(p);

	if (rank >= 0)
		snprintf(buf, size, "rank %lld (pid %u)", (long long)rank, p->pid);
	else if (p->pid)
		snprintf(buf, size, "the process with pid %u (%s)", p->pid, p->name);
	else
		snprintf(buf, size, "the client at %s", p->name);
	return buf;
}
