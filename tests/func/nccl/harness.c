/* See harness.h. */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int wait_ranks(int n, const struct shared *s, int killed, int timeout_s)
{
	double until = now_s() + timeout_s;
	int left = n, failed = 0, i, status;
	bool gone[64] = {false};

	while (left) {
		bool moved = false;

		for (i = 0; i < n; i++) {
			if (gone[i] || waitpid(s->pid[i], &status, WNOHANG) != s->pid[i])
				continue;
			gone[i] = moved = true;
			left--;
			if (status && i != killed) {
				fprintf(stderr, "rank %d of %d: status %#x\n", i, n,
					(unsigned)status);
				failed++;
			}
		}
		if (!moved)
			usleep(1000);
		if (left && now_s() > until) {
			for (i = 0; i < n; i++) {
				if (gone[i])
					continue;
				fprintf(stderr, "rank %d of %d hangs\n", i, n);
				kill(s->pid[i], SIGKILL);
				waitpid(s->pid[i], &status, 0);
				failed++;
			}
			break;
		}
	}
	return failed;
}

int run_ranks(int n, rank_fn fn, void *arg, int killed, int timeout_s)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, failed;

	if (s == MAP_FAILED)
		return n;
	fflush(NULL);
	for (i = 0; i < n; i++) {
		struct rank r = {.rank = i, .n = n, .shared = s, .arg = arg};
		int pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			exit(fn(&r));
		}
		s->pid[i] = pid;
	}
	failed = wait_ranks(n, s, killed, timeout_s);
	munmap(s, sizeof(*s));
	return failed;
}

void wait_flag(struct rank *r, int i, int value)
{
	while (r->shared->flag[i] < value)
		usleep(200);
}

ncclComm_t make_comm(struct rank *r, int k)
{
	ncclComm_t comm = NULL;
	ncclResult_t e = ncclSuccess;

	if (!r->rank) {
		e = ncclGetUniqueId(&r->shared->ids[k]);
		r->shared->id_ready[k] = 1;
	}
	while (!r->shared->id_ready[k])
		usleep(100);
	cudaSetDevice(r->rank % 8);
	if (!e)
		e = ncclCommInitRank(&comm, r->n, r->shared->ids[k], r->rank);
	if (e) {
		fprintf(stderr, "rank %d: %s\n", r->rank, ncclGetLastError(NULL));
		exit(1);
	}
	return comm;
}

bool wait_async(ncclComm_t comm, ncclResult_t want, int ms)
{
	double until = now_s() + ms * 1e-3;
	ncclResult_t got = ncclSuccess;

	do {
		if (ncclCommGetAsyncError(comm, &got) || got == want)
			break;
		usleep(500);
	} while (now_s() < until);
	if (got != want)
		fprintf(stderr, "the asynchronous error is %d, not %d: %s\n", (int)got, (int)want,
			ncclGetLastError(comm));
	return got == want;
}
