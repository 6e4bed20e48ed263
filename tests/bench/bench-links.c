/* Latency and bandwidth of links between two processes, 8 B to 16 MB (link-bench.h).
 *
 * usage: bench-links [--json FILE] [--quick] [--events] [ADDRESS ...]
 *
 * Addresses are shm:PATH, tcp:HOST:PORT, rdma:HOST:PORT (port 0: any); without one, shm
 * and tcp. Both ends poll, unless --events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "nbox/doctor/link-bench.h"

#define MAX_BYTES (16u << 20)
#define N_SIZES 10
#define MAX_LINKS 8

struct result {
	char kind[8];
	struct link_bench_row rows[N_SIZES];
};

static int bench(const char *addr, enum link_bench_wait wait, int is_quick, struct result *r)
{
	struct link_bench b = {.addr = addr,
			       .wait = wait,
			       .budget_bytes = is_quick ? 64u << 20 : 1u << 30,
			       .most = is_quick ? 2000 : 50000,
			       .limit_ns = (is_quick ? 2 : 10) * NS_PER_S};
	struct err err = {""};
	size_t n = 0;

	snprintf(r->kind, sizeof(r->kind), "%.*s", (int)strcspn(addr, ":"), addr);
	for (uint64_t bytes = 8; bytes <= MAX_BYTES; bytes *= bytes < 64     ? 8
							      : bytes < 1024 ? 16
									     : 4)
		r->rows[n++].bytes = bytes;
	if (link_bench_run(&b, r->rows, n, &err)) {
		fprintf(stderr, "bench-links: %s: %s\n", addr, err.text);
		return 1;
	}
	for (size_t i = 0; i < n; i++)
		printf("%-5s %10llu %12.2f %12.2f %12.3f %14.0f\n", r->kind,
		       (unsigned long long)r->rows[i].bytes, r->rows[i].p50_us, r->rows[i].p99_us,
		       r->rows[i].gbytes_per_s, r->rows[i].messages_per_s);
	fflush(stdout);
	return 0;
}

static int write_json(const char *path, const struct result *results, int n)
{
	FILE *f = fopen(path, "w");
	struct utsname u;
	const char *comma = "";

	if (!f) {
		fprintf(stderr, "bench-links: %s: %s\n", path, strerror(errno));
		return 1;
	}
	uname(&u);
	fprintf(f,
		"{\"name\": \"links\", \"host\": {\"machine\": \"%s\", \"kernel\": \"%s\", "
		"\"cores\": %ld}, \"rows\": [",
		u.machine, u.release, sysconf(_SC_NPROCESSORS_ONLN));
	for (int i = 0; i < n; i++)
		for (int k = 0; k < N_SIZES && results[i].rows[k].bytes; k++) {
			const struct link_bench_row *r = &results[i].rows[k];

			fprintf(f,
				"%s\n  {\"link\": \"%s\", \"bytes\": %llu, \"latency_us_p50\": %.3f, "
				"\"latency_us_p99\": %.3f, \"gbytes_per_s\": %.4f, \"messages_per_s\": %.0f}",
				comma, results[i].kind, (unsigned long long)r->bytes, r->p50_us,
				r->p99_us, r->gbytes_per_s, r->messages_per_s);
			comma = ",";
		}
	fprintf(f, "\n]}\n");
	return fclose(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct result results[MAX_LINKS];
	char folder[] = "/tmp/nbox-bench-XXXXXX", shm[64];
	const char *json = NULL, *addrs[MAX_LINKS];
	enum link_bench_wait wait = LINK_BENCH_POLL;
	int i, n = 0, is_quick = 0, failed = 0;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json") && i + 1 < argc) {
			json = argv[++i];
		} else if (!strcmp(argv[i], "--quick")) {
			is_quick = 1;
		} else if (!strcmp(argv[i], "--events")) {
			wait = LINK_BENCH_EVENTS;
		} else if (argv[i][0] != '-' && n < MAX_LINKS) {
			addrs[n++] = argv[i];
		} else {
			fprintf(stderr,
				"usage: bench-links [--json FILE] [--quick] [--events] [ADDRESS ...]\n");
			return 2;
		}
	}
	if (!mkdtemp(folder)) {
		fprintf(stderr, "bench-links: %s: %s\n", folder, strerror(errno));
		return 1;
	}
	snprintf(shm, sizeof(shm), "shm:%s/s", folder);
	if (!n) {
		addrs[n++] = shm;
		addrs[n++] = "tcp:127.0.0.1:0";
	}
	printf("%-5s %10s %12s %12s %12s %14s\n", "link", "bytes", "p50 us", "p99 us", "GB/s",
	       "messages/s");
	for (i = 0; i < n && !failed; i++)
		failed = bench(addrs[i], wait, is_quick, &results[i]);
	rmdir(folder);
	return failed ? 1 : json ? write_json(json, results, n) : 0;
}
