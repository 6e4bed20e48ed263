/* Facts about this machine, for the results of a run. */
#pragma once

struct host_facts {
	/* plain text: no quotes, backslashes or control characters */
	char host[65], kernel[65], machine[65], cpu[256];
	long cores;
	long long memory_bytes;
};

/* What cannot be found out is empty. */
void host_facts_read(struct host_facts *ret);
