/* See real-find.h. */
#include "shim/real/real-find.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NAME "libnccl.so.2"
#define CACHE "/etc/ld.so.cache"
#define OBJECTS_MAX 2048

/* The loaded objects, listed once: dlopen() must not run inside dl_iterate_phdr(). */
struct object {
	char *path; /* owned; "" the program */
	bool needs_nccl;
	bool is_nccl;
};

struct objects {
	struct object *list; /* owned */
	size_t n;
};

struct search {
	bool (*try)(void *ctx, const char *path);
	void *ctx;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* libnccl.so, libnccl.so.2, libnccl.so.2.28.9; also of a DT_NEEDED. */
static bool is_nccl_name(const char *name)
{
	return strncmp(name, "libnccl.so", 10) == 0 && (name[10] == 0 || name[10] == '.');
}

static bool needs_nccl(const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dyn = NULL;
	uintptr_t strings = 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (const ElfW(Dyn) *d = dyn; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			strings = d->d_un.d_ptr;
	if (!strings)
		return false;
	if (strings < info->dlpi_addr) /* not relocated: the vdso */
		strings += info->dlpi_addr;
	for (const ElfW(Dyn) *d = dyn; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && is_nccl_name((const char *)strings + d->d_un.d_val))
			return true;
	return false;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct objects *all = ctx;
	struct object *o = &all->list[all->n];
	const void *own = (const void *)(uintptr_t)real_find;
	const char *name = info->dlpi_name ? info->dlpi_name : "";

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) { /* ourselves */
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (uintptr_t)own >= start &&
		    (uintptr_t)own < start + p->p_memsz)
			return 0;
	}
	o->path = strdup(name);
	if (!o->path)
		return 1;
	o->is_nccl = is_nccl_name(base_name(name));
	o->needs_nccl = needs_nccl(info);
	return ++all->n == OBJECTS_MAX;
}

static void objects_deinit(struct objects *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->list[i].path);
	free(all->list);
}

static bool try_file(const struct search *s, const char *path)
{
	return access(path, R_OK) == 0 && s->try(s->ctx, path);
}

static bool try_folder(const struct search *s, const char *folder, size_t len, const char *below)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%.*s%s/" NAME, (int)len, folder, below) >=
	    (int)sizeof(path))
		return false;
	return try_file(s, path);
}

/* The dynamic linker's own list of folders for one object. */
static bool try_search_path(const struct search *s, const char *object)
{
	void *handle = dlopen(*object ? object : NULL, RTLD_LAZY | RTLD_NOLOAD);
	CLEANUP(freep) Dl_serinfo *info = NULL;
	Dl_serinfo size;
	bool found = false;

	if (!handle)
		return false;
	if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0) {
		info = malloc(size.dls_size);
		if (info) {
			info->dls_size = size.dls_size;
			info->dls_cnt = size.dls_cnt;
			if (dlinfo(handle, RTLD_DI_SERINFO, info) == 0)
				for (unsigned int i = 0; !found && i < info->dls_cnt; i++) {
					const char *dir = info->dls_serpath[i].dls_name;

					found = try_folder(s, dir, strlen(dir), "");
				}
		}
	}
	dlclose(handle);
	return found;
}

static bool try_site_packages(const struct search *s, const char *object)
{
	static const char *const names[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *at = strstr(object, names[i]);

		if (at && try_folder(s, object, (size_t)(at - object) + strlen(names[i]),
				     "nvidia/nccl/lib"))
			return true;
	}
	return false;
}

/* The format does not matter: the paths in it are strings that end with a zero byte. */
static bool try_cache(const struct search *s)
{
	CLEANUP(closep) int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
	static const char end[] = "/" NAME; /* with its zero byte */
	struct stat st;
	bool found = false;
	char *map;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(end))
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	for (const char *p = map, *stop = map + st.st_size; !found;) {
		const char *start;

		p = memmem(p, (size_t)(stop - p), end, sizeof(end));
		if (!p)
			break;
		for (start = p; start > map && start[-1]; start--)
			;
		if (*start == '/' && p - start < PATH_MAX - (int)sizeof(end))
			found = try_file(s, start);
		p++;
	}
	munmap(map, (size_t)st.st_size);
	return found;
}

static bool search_all(const struct search *s, const struct objects *all)
{
	static const char *const folders[] = {"/usr/local/cuda/lib64", "/usr/local/lib"};

	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].is_nccl && try_file(s, all->list[i].path))
			return true;
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].needs_nccl && try_search_path(s, all->list[i].path))
			return true;
	for (size_t i = 0; i < all->n; i++)
		if (try_site_packages(s, all->list[i].path))
			return true;
	if (try_search_path(s, "") || try_cache(s))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (try_folder(s, folders[i], strlen(folders[i]), ""))
			return true;
	return false;
}

static int objects_init(struct objects *all)
{
	*all = (struct objects){.list = calloc(OBJECTS_MAX, sizeof(*all->list))};
	if (!all->list)
		return -1;
	dl_iterate_phdr(add_object, all);
	return 0;
}

bool real_find(bool (*try)(void *ctx, const char *path), void *ctx)
{
	const struct search s = {try, ctx};
	struct objects all;
	bool found;

	if (objects_init(&all) < 0)
		return false;
	found = search_all(&s, &all);
	objects_deinit(&all);
	return found;
}

unsigned int real_mapped(char *buf, size_t size)
{
	unsigned int n = 0;
	struct objects all;
	size_t used = 0;

	if (size)
		buf[0] = 0;
	if (objects_init(&all) < 0)
		return 0;
	for (size_t i = 0; i < all.n; i++) {
		if (!all.list[i].is_nccl)
			continue;
		n++;
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", n > 1 ? ", " : "",
						 all.list[i].path);
	}
	objects_deinit(&all);
	return n;
}
