/* See host-facts.h. */
#include "base/host-facts.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f || *text == '"' || *text == '\\')
			*text = '?';
}

void host_facts_read(struct host_facts *ret)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	struct utsname u = {0};
	char line[512];

	*ret = (struct host_facts){.cores = sysconf(_SC_NPROCESSORS_ONLN),
				   .memory_bytes = (long long)sysconf(_SC_PHYS_PAGES) *
						   sysconf(_SC_PAGESIZE)};
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "model name : %255[^\n]", ret->cpu) == 1)
			break;
	if (f)
		fclose(f);
	uname(&u);
	snprintf(ret->host, sizeof(ret->host), "%s", u.nodename);
	snprintf(ret->kernel, sizeof(ret->kernel), "%s", u.release);
	snprintf(ret->machine, sizeof(ret->machine), "%s", u.machine);
	make_plain(ret->host);
	make_plain(ret->kernel);
	make_plain(ret->machine);
	make_plain(ret->cpu);
}
