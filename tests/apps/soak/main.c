/* soak: a job that makes, uses and ends communicators at random.
 *
 * soak --seed S --world N --real A,B,... [--mine I,J,...] [--lanes L] [--laps N] [--steps N]
 * [--plain] [--exact] [--no-fork] [--dir DIR] [--without STEP,...] [--only STEP,...] [--bound
 * SECONDS]
 *
 * scripts/soak starts it. After each lap it destroys everything; from the fourth lap on the
 * process must not hold more than after the third. Return: 0; 1 when something was wrong, with a
 * sentence; 3 when a call did not return. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

#define WARM_UP_LAPS 3

struct job job = {.n_lanes = 1,
		  .n_laps = 6,
		  .n_steps = 40,
		  .bound_s = 10,
		  .may_fork = true,
		  .without = "",
		  .dir = "."};

uint64_t rng_next(struct rng *r)
{
	uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(rng_next(r) % n);
}

struct rng rng_new(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	struct rng r = {seed};

	r.state ^= rng_next(&r) + a;
	r.state ^= rng_next(&r) + b;
	r.state ^= rng_next(&r) + c;
	return r;
}

int template_of(int v)
{
	int alike[MAX_REAL], n_alike = 0;

	for (int i = 0; i < job.k; i++) {
		if (job.real[i] == v)
			return v;
		if (job.real[i] % job.gpus_per_node == v % job.gpus_per_node)
			alike[n_alike++] = job.real[i];
	}
	return n_alike ? alike[v / job.gpus_per_node % n_alike] : job.real[v % job.k];
}

void die(const struct lane *l, const char *file, int line, const char *fmt, ...)
{
	static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
	char text[2000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&first); /* one says it */
	if (l)
		fprintf(stderr, "soak: %s:%d: rank %d lane %d lap %d step %d (%s): %s\n", file,
			line, l->me, l->number, l->lap, l->step, l->doing ? l->doing : "-", text);
	else
		fprintf(stderr, "soak: %s:%d: %s\n", file, line, text);
	_exit(1);
}

void nap_us(uint32_t us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

void dawdle(struct lane *l)
{
	switch (rng_below(&l->luck, 8)) {
	case 0:
		nap_us(20000);
		break;
	case 1:
		nap_us(2000);
		break;
	case 2:
	case 3:
		nap_us(rng_below(&l->luck, 500));
		break;
	default:
		break;
	}
}

/* --- laps ------------------------------------------------------------------------------- */

static void lane_open(struct lane *l)
{
	int place = 0;

	while (job.mine[place] != l->index)
		place++;
	l->watch = watch_new(l);
	CUDA(l, cudaSetDevice(place));
	for (int i = 0; i < N_STREAMS; i++)
		CUDA(l, cudaStreamCreateWithFlags(&l->streams[i], cudaStreamNonBlocking));
	for (int i = 0; i < N_SLOTS; i++) {
		struct slot *s = &l->slots[i];

		CUDA(l, cudaMalloc((void **)&s->send, SLOT_FLOATS * sizeof(float)));
		CUDA(l, cudaMalloc((void **)&s->recv, SLOT_FLOATS * sizeof(float)));
		s->host = malloc(SLOT_FLOATS * sizeof(float));
		if (!s->host)
			DIE(l, "out of memory");
	}
}

/* cudaFree waits for the whole device: after all lanes have ended. */
static void lane_close(struct lane *l)
{
	for (int i = 0; i < N_SLOTS; i++) {
		CUDA(l, cudaFree(l->slots[i].send));
		CUDA(l, cudaFree(l->slots[i].recv));
		free(l->slots[i].host);
	}
	for (int i = 0; i < N_STREAMS; i++)
		CUDA(l, cudaStreamDestroy(l->streams[i]));
	watch_free(l->watch);
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;

	lane_open(l);
	l->doing = "the first communicator";
	comm_base(l);
	for (l->step = 0; l->step < job.n_steps; l->step++)
		step_run(l);
	l->doing = "the end";
	comms_end(l);
	return NULL;
}

static void run_lap(int lap)
{
	static struct lane lanes[MAX_REAL * MAX_LANES];
	int n = job.n_mine * job.n_lanes;

	memset(lanes, 0, sizeof(lanes));
	for (int i = 0; i < n; i++) {
		struct lane *l = &lanes[i];

		l->index = job.mine[i / job.n_lanes];
		l->me = job.real[l->index];
		l->number = i % job.n_lanes;
		l->lap = lap;
		l->plan = rng_new(job.seed, (uint64_t)lap, (uint64_t)l->number, 1);
		l->luck = rng_new(job.seed, (uint64_t)lap, (uint64_t)l->number,
				  100 + (uint64_t)l->index);
		if (pthread_create(&l->thread, NULL, lane_main, l))
			DIE(l, "no thread");
	}
	for (int i = 0; i < n; i++)
		pthread_join(lanes[i].thread, NULL);
	for (int i = 0; i < n; i++)
		lane_close(&lanes[i]);
}

/* --- options ------------------------------------------------------------------------------ */

static int read_list(const char *text, int *ret, int most)
{
	int n = 0;

	for (char *p = (char *)(uintptr_t)text; *p && n < most; p += *p == ',')
		ret[n++] = (int)strtol(p, &p, 10);
	return n;
}

static void check_steps(const char *list)
{
	for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		if (!step_is_known(p))
			DIE(NULL, "no such step: %s", p);
	}
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", 1, NULL, 's'},    {"world", 1, NULL, 'n'}, {"real", 1, NULL, 'r'},
		{"mine", 1, NULL, 'm'},    {"lanes", 1, NULL, 'l'}, {"laps", 1, NULL, 'L'},
		{"steps", 1, NULL, 'S'},   {"plain", 0, NULL, 'p'}, {"exact", 0, NULL, 'e'},
		{"no-fork", 0, NULL, 'f'}, {"dir", 1, NULL, 'd'},   {"without", 1, NULL, 'w'},
		{"only", 1, NULL, 'o'},    {"bound", 1, NULL, 'b'}, {"gpus-per-node", 1, NULL, 'g'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			job.seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			job.n = atoi(optarg);
			break;
		case 'r':
			job.k = read_list(optarg, job.real, MAX_REAL);
			break;
		case 'm':
			job.n_mine = read_list(optarg, job.mine, MAX_REAL);
			break;
		case 'l':
			job.n_lanes = atoi(optarg);
			break;
		case 'L':
			job.n_laps = atoi(optarg);
			break;
		case 'S':
			job.n_steps = atoi(optarg);
			break;
		case 'p':
			job.is_plain = true;
			break;
		case 'e':
			job.is_exact = true;
			break;
		case 'f':
			job.may_fork = false;
			break;
		case 'd':
			job.dir = optarg;
			break;
		case 'w':
			job.without = optarg;
			break;
		case 'o':
			job.only = optarg;
			break;
		case 'g':
			job.gpus_per_node = atoi(optarg);
			break;
		case 'b':
			job.bound_s = atof(optarg);
			break;
		default:
			exit(2);
		}
	}
	check_steps(job.without);
	check_steps(job.only);
	if (job.k < 1 || job.n < job.k || job.n_lanes < 1 || job.n_lanes > MAX_LANES ||
	    !job.n_mine || job.gpus_per_node < 1)
		DIE(NULL, "--world, --real, --mine and --gpus-per-node are needed; 1 to %d lanes",
		    MAX_LANES);
}

int main(int argc, char **argv)
{
	struct census base, last;

	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0; /* somebody's child */
	read_options(argc, argv);
	watch_start();
	for (int lap = 0; lap < job.n_laps; lap++) {
		char when[40];

		run_lap(lap);
		snprintf(when, sizeof(when), "after lap %d", lap);
		if (lap == WARM_UP_LAPS - 1)
			census_take(&base), last = base;
		else if (lap >= WARM_UP_LAPS)
			census_compare(&base, &last, when);
	}
	return 0;
}
