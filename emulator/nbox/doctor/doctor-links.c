/* nbox doctor: sends messages over each link and measures them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nbox/doctor/doctor.h"
#include "nbox/doctor/link-bench.h"

#define LINKS "links (one way between two processes, waiting as workers do)"

static void test_link(struct doctor *d, const char *kind, const char *addr)
{
	struct link_bench b = {.addr = addr,
			       .wait = LINK_BENCH_SPIN,
			       .budget_bytes = 64u << 20,
			       .most = 1000,
			       .limit_ns = 300 * NS_PER_MS};
	struct link_bench_row rows[] = {{.bytes = 8}, {.bytes = 1u << 20}};
	bool is_asked = d->link && strcmp(d->link, kind) == 0;
	bool is_ours = strcmp(kind, "rdma") != 0; /* needs nothing that could be missing */
	struct err err = {""};
	json_t *f;

	if (link_bench_run(&b, rows, ARRAY_SIZE(rows), &err) < 0) {
		doctor_add(d, is_asked || is_ours ? DOCTOR_WRONG : DOCTOR_NOTE, LINKS, kind, "%s",
			   err.text);
		return;
	}
	f = doctor_add(d, DOCTOR_OK, LINKS, kind,
		       "%.2f us (p99 %.2f us) at 8 B, %.2f M messages/s; %.3f GB/s at 1 MiB",
		       rows[0].p50_us, rows[0].p99_us, rows[0].messages_per_s / 1e6,
		       rows[1].gbytes_per_s);
	if (!f)
		return;
	json_object_set_new(f, "address", json_string(addr));
	json_object_set_new(f, "latency_us_p50", json_real(rows[0].p50_us));
	json_object_set_new(f, "latency_us_p99", json_real(rows[0].p99_us));
	json_object_set_new(f, "messages_per_s", json_real(rows[0].messages_per_s));
	json_object_set_new(f, "gbytes_per_s", json_real(rows[1].gbytes_per_s));
}

void doctor_links(struct doctor *d)
{
	char addr[64];

	snprintf(addr, sizeof(addr), "shm:@nbox-doctor-%d", (int)getpid());
	test_link(d, "shm", addr);
	test_link(d, "tcp", "tcp:127.0.0.1:0");
	if (d->rdma_address[0]) {
		test_link(d, "rdma", "rdma:auto:0"); /* as nboxd does without an address */
	} else {
		doctor_add(d, d->link && strcmp(d->link, "rdma") == 0 ? DOCTOR_WRONG : DOCTOR_NOTE,
			   LINKS, "rdma",
			   "not tested: no device of this machine can be used (see above)");
	}
}
