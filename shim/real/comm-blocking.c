/* See comm-blocking.h. */
#include "shim/real/comm-blocking.h"

#include <pthread.h>
#include <stdlib.h>

#define NAME "NCCL_COMM_BLOCKING"

static int said = -1;

static void read_once(void)
{
	const char *text = getenv(NAME);
	char *end;
	long value;

	if (!text || !*text)
		return;
	value = strtol(text, &end, 0); /* as NCCL reads it */
	if (*end || value < 0 || value > 1)
		return;
	if (value == 0 && setenv(NAME, "1", 1)) /* changes one pointer: the variable is there */
		return;
	said = (int)value;
}

int comm_blocking_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_once);
	return said;
}
