/* For tests of nboxd: it and a world of up to five fake workers, with a folder for their socket. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "cmocka-all.h"
#include "fake-worker.h"

static char dir[64];
static struct fake f[5];

/* The folder, as a group's fixture. */
static inline int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nbox-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static inline const char *address(const char *link)
{
	return test_address(link, dir);
}

/* Nodes x 2 ranks, the first @n_real of them here, one communicator of all. */
static inline void start_world(struct daemon *d, const char *nodes, size_t n, const char *link,
			       const char *exchange, const char *const *more)
{
	const char *args[40] = {"--nodes", nodes,         "--gpus-per-node", n == 1 ? "1" : "2",
				"--addr",  address(link), "--exchange",      exchange};
	char real[32];
	int k = 8;

	snprintf(real, sizeof(real), n == 1 ? "0" : "0-%zu", n - 1);
	args[k++] = "--real";
	args[k++] = real;
	while (more && *more)
		args[k++] = *more++;
	args[k] = NULL;
	daemon_start(d, args);
	for (size_t i = 0; i < n; i++)
		fake_connect(&f[i], d->addr, "");
	assert_true(fakes_got(f, n, WIRE_WELCOME, 1));
	for (size_t i = 0; i < n; i++)
		fake_init(&f[i], 7, f[i].welcome.world, (uint32_t)i, (uint32_t)i);
	assert_true(fakes_got(f, n, WIRE_COMM_READY, 1));
}

static inline void close_all(size_t n)
{
	for (size_t i = 0; i < n; i++)
		fake_close(&f[i]);
}
