/* See impl.h: a communicator whose ranks are all of this process has its bootstrap answered by a
 * thread here, which lives as long as the process. */
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "impl.h"

static struct host host;

static void start(void)
{
	if (host_start(&host, NULL, NULL) < 0)
		abort();
}

int root_make_id(uint32_t n, ncclUniqueId *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct host_places places = {.n_ranks = n, .node_size = n, .n_real_nodes = 1};
	struct host_comm c;
	char why[256];

	pthread_once(&once, start);
	if (n > HOST_RANKS_MAX ||
	    host_comm_make(&host, nccl_records_find(version_told(), true, why, sizeof(why)),
			   &places, 1, 1, &c) < 0)
		return -1;
	memcpy(ret->internal, c.ids, sizeof(ret->internal));
	host_comm_free(&c); /* it lives on at the host */
	return 0;
}
