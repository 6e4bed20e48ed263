/* See impl.h: one connection and its slots. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "impl.h"

static size_t buffer_bytes[PLUGIN_N_PROTOCOLS] = {STEPS * 64 << 10, STEPS * 614400,
						  STEPS * 512 << 10};

static void __attribute__((constructor)) read_buffer_bytes(void)
{
	static const char *const names[] = {"NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE",
					    "NCCL_BUFFSIZE"};

	for (int i = 0; i < PLUGIN_N_PROTOCOLS; i++)
		if (getenv(names[i]))
			buffer_bytes[i] = strtoul(getenv(names[i]), NULL, 0);
}

size_t step_bytes(int protocol)
{
	return buffer_bytes[protocol] / STEPS;
}

struct pipe *pipe_new(uint32_t peer, int channel, int index, bool is_send, bool is_net)
{
	struct pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct pipe){.peer = peer,
			   .channel = channel,
			   .index = index,
			   .is_send = is_send,
			   .is_net = is_net,
			   .fd = -1};
	p->last = &p->first;
	return p;
}

int pipe_map(struct pipe *p, int fd)
{
	bool is_first = fd < 0;
	void *at;

	p->mapped = sizeof(struct slots);
	for (int i = 0; i < PLUGIN_N_PROTOCOLS; i++)
		p->mapped += STEPS * step_bytes(i);
	if (is_first) {
		fd = memfd_create("proxy-nccl", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)p->mapped) < 0)
			return -1;
	}
	p->fd = fd;
	at = mmap(NULL, p->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -1;
	p->slots = at;
	for (int i = 0; is_first && i < STEPS; i++)
		p->slots->bytes[i] = -1;
	return 0;
}

void pipe_free(struct pipe *p)
{
	if (p->slots)
		munmap(p->slots, p->mapped);
	if (p->fd >= 0)
		close(p->fd);
	while (p->first) {
		struct proxy_op *o = p->first;

		p->first = o->next;
		free(o);
	}
	free(p);
}

unsigned char *pipe_slot(struct pipe *p, int protocol, uint64_t step)
{
	unsigned char *at = p->slots->data;

	for (int i = 0; i < protocol; i++)
		at += STEPS * step_bytes(i);
	return at + step % STEPS * step_bytes(protocol);
}
