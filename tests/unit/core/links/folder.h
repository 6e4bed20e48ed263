/* For tests of links: a folder for sockets, and a shm address in it. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/nbox-links-XXXXXX";
static char shm_addr[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(shm_addr, sizeof(shm_addr), "shm:%s/s", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* fails when a socket was left behind */
}
