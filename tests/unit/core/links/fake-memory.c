/* Fake registered memory, with keys and bounds, and memory of a GPU. See fake-verbs.h. */
#include "fake-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

struct region {
	struct ibv_mr mr;
	int access;
	struct region *next;
};

static struct region *regions;
static uint32_t next_key = 0x1000;

#define GPU_AREAS 16
#define GPU_PAGE 65536
static struct gpu_area {
	unsigned char *place, *seen, *real; /* @seen is inside @place */
	uint64_t bytes;
	ino_t inode;
} gpu[GPU_AREAS];
_Atomic unsigned int fake_n_dmabufs, fake_n_peer_memory;

void fake_gpu_alloc(uint64_t bytes, void **ret_seen, unsigned char **ret_real, int *ret_fd)
{
	int fd = memfd_create("gpu", MFD_CLOEXEC);
	struct gpu_area a = {.bytes = bytes};
	struct stat st;
	unsigned int i;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || fstat(fd, &st))
		abort();
	a.inode = st.st_ino;
	/* aligned as memory of GPUs is */
	a.place = mmap(NULL, bytes + GPU_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a.place == MAP_FAILED)
		abort();
	a.seen =
		(unsigned char *)(((uintptr_t)a.place + GPU_PAGE - 1) & ~(uintptr_t)(GPU_PAGE - 1));
	a.seen = mmap(a.seen, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
	a.real = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a.seen == MAP_FAILED || a.real == MAP_FAILED)
		abort();
	pthread_mutex_lock(&fake_lock);
	for (i = 0; i < GPU_AREAS && gpu[i].seen; i++)
		;
	if (i == GPU_AREAS)
		abort();
	gpu[i] = a;
	fake_alive += 2; /* the memory, its descriptor */
	pthread_mutex_unlock(&fake_lock);
	*ret_seen = a.seen;
	*ret_real = a.real;
	*ret_fd = fd;
}

static struct gpu_area *find_gpu(uint64_t addr, uint64_t n)
{
	for (unsigned int i = 0; i < GPU_AREAS; i++)
		if (gpu[i].seen && addr >= (uintptr_t)gpu[i].seen &&
		    addr + n <= (uintptr_t)gpu[i].seen + gpu[i].bytes)
			return &gpu[i];
	return NULL;
}

/* Whether some descriptor of this process still is the dma-buf. */
static bool is_fd_open(ino_t inode)
{
	struct stat st;

	for (int fd = 0; fd < 256; fd++)
		if (!fstat(fd, &st) && st.st_ino == inode && S_ISREG(st.st_mode))
			return true;
	return false;
}

void fake_gpu_free(void *seen)
{
	struct gpu_area *a;
	struct region *r;

	pthread_mutex_lock(&fake_lock);
	a = find_gpu((uintptr_t)seen, 1);
	for (r = regions; a && r; r = r->next)
		if (r->mr.addr == seen)
			abort(); /* freed while it is registered */
	if (!a || munmap(a->place, a->bytes + GPU_PAGE) || munmap(a->real, a->bytes))
		abort();
	fake_alive -= 1 + !is_fd_open(a->inode);
	memset(a, 0, sizeof(*a));
	pthread_mutex_unlock(&fake_lock);
}

void *fake_bytes(uint64_t addr)
{
	struct gpu_area *a = find_gpu(addr, 1);

	return a ? a->real + (addr - (uintptr_t)a->seen) : (void *)(uintptr_t)addr;
}

static struct ibv_mr *add(struct ibv_pd *pd, void *p, size_t n, int access);

struct ibv_mr *fake_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t n, uint64_t address,
				  int fd, int access)
{
	struct gpu_area *a;
	struct stat st;

	pthread_mutex_lock(&fake_lock);
	a = find_gpu(address, n);
	pthread_mutex_unlock(&fake_lock);
	if (!a || offset || fstat(fd, &st) || st.st_ino != a->inode || address % GPU_PAGE ||
	    n % GPU_PAGE)
		abort();
	if (fake_faults.dmabuf_errno) {
		errno = fake_faults.dmabuf_errno;
		return NULL;
	}
	fake_n_dmabufs++;
	return add(pd, a->seen, n, access);
}

struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *p, size_t n, int access)
{
	bool is_gpu;

	pthread_mutex_lock(&fake_lock);
	is_gpu = find_gpu((uintptr_t)p, 1);
	pthread_mutex_unlock(&fake_lock);
	if (is_gpu && fake_faults.peer_memory_errno) {
		errno = fake_faults.peer_memory_errno;
		return NULL;
	}
	if (fake_faults.reg_errno && n >= fake_faults.reg_bytes) {
		errno = fake_faults.reg_errno;
		return NULL;
	}
	fake_n_peer_memory += is_gpu;
	return add(pd, p, n, access);
}

static struct ibv_mr *add(struct ibv_pd *pd, void *p, size_t n, int access)
{
	struct region *r = calloc(1, sizeof(*r));

	pthread_mutex_lock(&fake_lock);
	r->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = p, .length = n};
	r->mr.lkey = r->mr.rkey = next_key += 7;
	r->access = access;
	r->next = regions;
	regions = r;
	fake_alive++;
	pthread_mutex_unlock(&fake_lock);
	return &r->mr;
}

int fake_dereg_mr(struct ibv_mr *mr)
{
	struct region **at;

	pthread_mutex_lock(&fake_lock);
	for (at = &regions; *at && &(*at)->mr != mr; at = &(*at)->next)
		;
	if (!*at)
		abort();
	*at = (*at)->next;
	fake_alive--;
	pthread_mutex_unlock(&fake_lock);
	free(container_of(mr, struct region, mr));
	return 0;
}

bool fake_may_touch(uint32_t key, uint64_t addr, uint64_t n, int access)
{
	struct region *r;

	for (r = regions; r; r = r->next)
		if (r->mr.lkey == key && (r->access & access) == access &&
		    addr >= (uintptr_t)r->mr.addr &&
		    addr + n <= (uintptr_t)r->mr.addr + r->mr.length)
			return true;
	return false;
}
