/* A data-parallel trainer in C that works as DistributedDataParallel does, with NCCL and the CUDA
 * runtime API and nothing else. It learns to predict the next character of a text.
 *
 * Computation is a sequence of host functions on one stream: draw a batch, forward, backward
 * layer by layer, update. The backward pass puts gradients into buckets in the order in which it
 * makes them. A complete bucket is all-reduced on the communication stream while the backward
 * pass goes on. Before the update the compute stream waits for all buckets; the length of that
 * wait is the exposed communication.
 *
 * The batches of a rank depend on (seed, step, rank) only. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <getopt.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "nbox-perf/rendezvous.h"
#include "text.h"

#define MAX_BUCKETS 64
#define STREAM_EVALUATION UINT64_C(0x65766c)

static struct options {
	int steps, warmup, batch, hidden, layers, log;
	double bucket_mb, rate, layer_ms;
	uint64_t seed;
	const char *json, *id_file;
	char *texts[32];
	size_t n_texts;
} options = {
	.steps = 40,
	.warmup = 2,
	.batch = 128,
	.hidden = 384,
	.layers = 4,
	.bucket_mb = 0.5,
	.rate = 0.2,
	.seed = 1,
};

struct bucket {
	size_t start, n;   /* floats of the gradients */
	int after;         /* complete when this layer's backward is over; -1: the embedding's */
	cudaEvent_t ready; /* on the compute stream */
	cudaEvent_t done;  /* on the communication stream */
};

struct trainer {
	int rank, world, local_rank;
	struct text text;
	struct model model;
	int step; /* of the batch that is drawn next; written while the compute stream is idle */
	struct bucket buckets[MAX_BUCKETS];
	int n_buckets;
	cudaStream_t compute, communication;
	cudaEvent_t start, waiting, waited, end;
	ncclComm_t comm;
	_Atomic int is_over; /* tells the watchdog */
	float *loss;         /* on the device: what is averaged over the ranks */
	double *iteration_ms, *exposed_ms;
};

struct layer_arg {
	struct trainer *trainer;
	int layer;
};

static int rank_for_messages;

/* The main thread and the watchdog may both learn of an error: the first one says it. */
static atomic_flag is_said = ATOMIC_FLAG_INIT;

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	while (atomic_flag_test_and_set(&is_said))
		pause(); /* for the end: the other one may not have said it yet */
	fprintf(stderr, "trainer: rank %d: %s: %s\n", rank_for_messages, what, why);
	exit(1);
}

#define CUDA(call)                                              \
	do {                                                    \
		cudaError_t error_ = (call);                    \
		if (error_ != cudaSuccess)                      \
			die(#call, cudaGetErrorString(error_)); \
	} while (0)
/* One thread at a time, as an abort frees the communicator that the others use. */
static pthread_mutex_t nccl_lock = PTHREAD_MUTEX_INITIALIZER;

#define NCCL(call)                                               \
	do {                                                     \
		ncclResult_t result_;                            \
		pthread_mutex_lock(&nccl_lock);                  \
		result_ = (call);                                \
		pthread_mutex_unlock(&nccl_lock);                \
		if (result_ != ncclSuccess)                      \
			die(#call, ncclGetErrorString(result_)); \
	} while (0)

/* --- what runs on the compute stream --------------------------------------------------------- */

static void draw(struct trainer *t, uint64_t stream)
{
	unsigned char *chars = t->model.chars;
	uint64_t at;

	for (int b = 0; b < t->model.shape.batch; b++, chars += MODEL_CONTEXT + 1) {
		at = model_random(options.seed ^ stream,
				  (uint64_t)t->rank << 32 | (uint32_t)t->step, (uint64_t)b) %
		     (t->text.n - MODEL_CONTEXT - 1);
		memcpy(chars, t->text.chars + at, MODEL_CONTEXT + 1);
	}
}

/* Computation of as much as @layers' forward passes begins, and is over no earlier than on a device
 * that needs --layer-ms for one: this CPU's own time changes with what runs beside, and with how
 * long it was idle before. */
static struct timespec begin(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now;
}

static void end(struct timespec begun, double layers)
{
	int64_t ns = begun.tv_nsec + (int64_t)(layers * options.layer_ms * 1e6);
	struct timespec over = {begun.tv_sec + ns / 1000000000, ns % 1000000000};

	if (options.layer_ms > 0)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &over, NULL) == EINTR)
			;
}

static void do_forward(void *arg)
{
	struct timespec begun = begin();
	struct trainer *t = arg;

	draw(t, 0);
	model_forward(&t->model);
	end(begun, t->model.n_layers);
}

static void do_backward(void *arg)
{
	struct timespec begun = begin();
	struct layer_arg *layer = arg;

	if (layer->layer >= 0)
		model_backward(&layer->trainer->model, layer->layer);
	else
		model_backward_embedding(&layer->trainer->model);
	end(begun, layer->layer >= 0 ? 2 : 1);
}

static void do_update(void *arg)
{
	struct timespec begun = begin();
	struct trainer *t = arg;

	model_update(&t->model, (float)options.rate);
	end(begun, 1);
}

/* The mean loss of some batches that training never draws. */
static void do_evaluate(void *arg)
{
	struct trainer *t = arg;
	double sum = 0;

	for (t->step = 0; t->step < 16; t->step++) {
		draw(t, STREAM_EVALUATION);
		model_forward(&t->model);
		sum += t->model.loss;
	}
	*t->loss = (float)(sum / 16);
}

/* --- set-up ---------------------------------------------------------------------------------- */

static int number_from_env(const char *name, int fallback)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (!text || !*text)
		return fallback;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || n < 0 || n > 1 << 24) {
		fprintf(stderr, "trainer: %s=%s is no rank or size\n", name, text);
		exit(2);
	}
	return (int)n;
}

static void make_buckets(struct trainer *t)
{
	size_t limit = (size_t)(options.bucket_mb * 1e6 / sizeof(float)), start = 0, done;
	struct bucket *bucket;

	for (int layer = t->model.n_layers - 1; layer >= -1; layer--) {
		done = model_done(&t->model, layer);
		if (done - start < limit && layer >= 0)
			continue;
		bucket = &t->buckets[t->n_buckets++];
		*bucket = (struct bucket){.start = start, .n = done - start, .after = layer};
		CUDA(cudaEventCreateWithFlags(&bucket->ready, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&bucket->done, cudaEventDisableTiming));
		start = done;
	}
}

static void make_model(struct trainer *t)
{
	struct model_shape shape = {t->text.n_chars, options.hidden, options.layers, options.batch};
	size_t bytes;

	if (model_init(&t->model, &shape) != 0)
		die("model", "no memory");
	bytes = t->model.n_params * sizeof(float);
	/* Managed: the host functions use it, and NCCL does. */
	CUDA(cudaMallocManaged((void **)&t->model.params, bytes, cudaMemAttachGlobal));
	CUDA(cudaMallocManaged((void **)&t->model.grads, bytes, cudaMemAttachGlobal));
	CUDA(cudaMallocManaged((void **)&t->loss, sizeof(float), cudaMemAttachGlobal));
	/* The others get theirs by the broadcast. */
	if (t->rank == 0)
		model_randomize(&t->model, options.seed);
	else
		CUDA(cudaMemset(t->model.params, 0, bytes));
}

/* An error that only the communicator knows of would leave the streams waiting: who looks after it
 * is this thread. */
static void *watch(void *arg)
{
	const struct timespec interval = {.tv_nsec = 20000000};
	struct trainer *t = arg;
	struct timespec until;
	ncclResult_t state;

	while (!atomic_load(&t->is_over)) {
		if (ncclCommGetAsyncError(t->comm, &state) == ncclSuccess && state != ncclSuccess &&
		    state != ncclInProgress && !atomic_load(&t->is_over)) {
			if (atomic_flag_test_and_set(&is_said))
				pause(); /* the main thread is on its way out */
			fprintf(stderr, "trainer: rank %d: NCCL reports: %s\n", t->rank,
				ncclGetErrorString(state));
			/* a main thread that hangs inside NCCL is freed by the abort */
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_sec += 1;
			pthread_mutex_timedlock(&nccl_lock, &until);
			ncclCommAbort(t->comm);
			_exit(1);
		}
		nanosleep(&interval, NULL);
	}
	return NULL;
}

static void set_up(struct trainer *t)
{
	static char default_text[] = "/usr/share/common-licenses/*";
	ncclUniqueId id;
	int n_devices;

	if (!options.n_texts)
		options.texts[options.n_texts++] = default_text;
	if (text_load(&t->text, options.texts, options.n_texts) != 0)
		exit(1);
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(t->local_rank % n_devices));
	CUDA(cudaStreamCreateWithFlags(&t->compute, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&t->communication, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&t->start));
	CUDA(cudaEventCreate(&t->waiting));
	CUDA(cudaEventCreate(&t->waited));
	CUDA(cudaEventCreate(&t->end));
	make_model(t);
	make_buckets(t);
	t->iteration_ms = calloc((size_t)options.steps + 1, sizeof(double));
	t->exposed_ms = calloc((size_t)options.steps + 1, sizeof(double));
	if (!t->iteration_ms || !t->exposed_ms)
		die("times", "no memory");
	if (rendezvous(t->rank, options.id_file, &id) != 0)
		exit(1);
	NCCL(ncclCommInitRank(&t->comm, t->world, id, t->rank));
	rendezvous_end();
	NCCL(ncclBroadcast(t->model.params, t->model.params, t->model.n_params, ncclFloat, 0,
			   t->comm, t->communication));
}

/* --- training -------------------------------------------------------------------------------- */

static void reduce_buckets(struct trainer *t, int layer)
{
	struct bucket *bucket;

	for (int i = 0; i < t->n_buckets; i++) {
		bucket = &t->buckets[i];
		if (bucket->after != layer)
			continue;
		CUDA(cudaEventRecord(bucket->ready, t->compute));
		CUDA(cudaStreamWaitEvent(t->communication, bucket->ready, 0));
		NCCL(ncclAllReduce(t->model.grads + bucket->start, t->model.grads + bucket->start,
				   bucket->n, ncclFloat, ncclAvg, t->comm, t->communication));
		CUDA(cudaEventRecord(bucket->done, t->communication));
	}
}

static void step(struct trainer *t, struct layer_arg *layers)
{
	CUDA(cudaEventRecord(t->start, t->compute));
	CUDA(cudaLaunchHostFunc(t->compute, do_forward, t));
	for (int layer = t->model.n_layers - 1; layer >= -1; layer--) {
		CUDA(cudaLaunchHostFunc(t->compute, do_backward, &layers[layer + 1]));
		reduce_buckets(t, layer);
	}
	CUDA(cudaEventRecord(t->waiting, t->compute));
	for (int i = 0; i < t->n_buckets; i++)
		CUDA(cudaStreamWaitEvent(t->compute, t->buckets[i].done, 0));
	CUDA(cudaEventRecord(t->waited, t->compute));
	CUDA(cudaLaunchHostFunc(t->compute, do_update, t));
	CUDA(cudaEventRecord(t->end, t->compute));
}

static void train(struct trainer *t)
{
	struct layer_arg layers[MODEL_MAX_LAYERS + 1];
	struct timespec before, after;
	float exposed;

	for (int i = 0; i <= t->model.n_layers; i++)
		layers[i] = (struct layer_arg){t, i - 1};
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int s = 0; s < options.steps; s++) {
		t->step = s;
		step(t, layers);
		CUDA(cudaEventSynchronize(t->end));
		clock_gettime(CLOCK_MONOTONIC, &after);
		CUDA(cudaEventElapsedTime(&exposed, t->waiting, t->waited));
		t->iteration_ms[s] = (double)(after.tv_sec - before.tv_sec) * 1e3 +
				     (double)(after.tv_nsec - before.tv_nsec) / 1e6;
		t->exposed_ms[s] = exposed;
		before = after;
		if (options.log && t->local_rank == 0 && (s + 1) % options.log == 0) {
			printf("step %d: %.3f ms, %.3f ms exposed, own loss %.6f\n", s + 1,
			       t->iteration_ms[s], t->exposed_ms[s], (double)t->model.loss);
			fflush(stdout);
		}
	}
}

static float evaluate(struct trainer *t)
{
	CUDA(cudaLaunchHostFunc(t->compute, do_evaluate, t));
	CUDA(cudaStreamSynchronize(t->compute));
	NCCL(ncclAllReduce(t->loss, t->loss, 1, ncclFloat, ncclAvg, t->comm, t->communication));
	CUDA(cudaStreamSynchronize(t->communication));
	return *t->loss;
}

static void tear_down(struct trainer *t)
{
	CUDA(cudaDeviceSynchronize());
	NCCL(ncclCommFinalize(t->comm));
	NCCL(ncclCommDestroy(t->comm));
	for (int i = 0; i < t->n_buckets; i++) {
		CUDA(cudaEventDestroy(t->buckets[i].ready));
		CUDA(cudaEventDestroy(t->buckets[i].done));
	}
	CUDA(cudaEventDestroy(t->start));
	CUDA(cudaEventDestroy(t->waiting));
	CUDA(cudaEventDestroy(t->waited));
	CUDA(cudaEventDestroy(t->end));
	CUDA(cudaStreamDestroy(t->compute));
	CUDA(cudaStreamDestroy(t->communication));
	CUDA(cudaFree(t->model.params));
	CUDA(cudaFree(t->model.grads));
	CUDA(cudaFree(t->loss));
	model_deinit(&t->model);
	text_free(&t->text);
	free(t->iteration_ms);
	free(t->exposed_ms);
}

/* --- the result ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct times {
	double mean, p50, p95;
};

/* Sorts @ms in place. */
static struct times summarize(double *ms, int n)
{
	struct times times = {0};

	if (n == 0)
		return times;
	for (int i = 0; i < n; i++)
		times.mean += ms[i] / n;
	qsort(ms, (size_t)n, sizeof(double), by_size);
	times.p50 = ms[n / 2];
	times.p95 = ms[(int)((n - 1) * 0.95 + 0.5)];
	return times;
}

static int write_json(const struct trainer *t, const struct times *iteration,
		      const struct times *exposed, double first, double loss)
{
	FILE *file = fopen(options.json, "w");

	if (!file) {
		fprintf(stderr, "trainer: cannot write %s: %s\n", options.json, strerror(errno));
		return 1;
	}
	fprintf(file,
		"{\"name\": \"trainer\", \"rank\": %d, \"world_size\": %d, \"steps\": %d, "
		"\"batch\": %d, \"parameters\": %zu, \"allreduces_per_step\": %d, "
		"\"iteration_ms\": {\"mean\": %.4f, \"p50\": %.4f, \"p95\": %.4f}, "
		"\"exposed_ms\": %.4f, \"exposed_p50_ms\": %.4f, "
		"\"initial_loss\": %.9g, \"loss\": %.9g}\n",
		t->rank, t->world, options.steps, options.batch, t->model.n_params, t->n_buckets,
		iteration->mean, iteration->p50, iteration->p95, exposed->mean, exposed->p50, first,
		loss);
	if (fclose(file) == 0)
		return 0;
	fprintf(stderr, "trainer: cannot write %s: %s\n", options.json, strerror(errno));
	return 1;
}

/* The first steps pay for threads and connections: they are left out where there are enough. */
static int report(struct trainer *t, double first, double loss)
{
	int skip = options.steps > 2 * options.warmup ? options.warmup : 0;
	struct times iteration = summarize(t->iteration_ms + skip, options.steps - skip);
	struct times exposed = summarize(t->exposed_ms + skip, options.steps - skip);

	if (t->local_rank != 0)
		return 0;
	printf("%d ranks, %zu parameters, %d steps of %d, %d buckets: iteration mean %.3f ms, "
	       "p50 %.3f ms; exposed communication %.3f ms; loss %.6f -> %.6f\n",
	       t->world, t->model.n_params, options.steps, options.batch, t->n_buckets,
	       iteration.mean, iteration.p50, exposed.mean, first, loss);
	return options.json ? write_json(t, &iteration, &exposed, first, loss) : 0;
}

/* --- the command line ------------------------------------------------------------------------ */

static const char usage[] =
	"usage: trainer [options]      (RANK, WORLD_SIZE, LOCAL_RANK say who this process is)\n"
	"  --steps N        optimizer steps (default 40)\n"
	"  --batch N        samples per rank and step (default 128)\n"
	"  --hidden N       width of the hidden layers (default 384)\n"
	"  --layers N       hidden layers (default 4)\n"
	"  --bucket-mb X    gradients gathered before an all-reduce, MB (default 0.5)\n"
	"  --rate X         learning rate (default 0.2)\n"
	"  --layer-ms X     computation takes no less than on a device that needs X ms for a layer's\n"
	"                   forward pass, and twice that for its backward pass (default 0)\n"
	"  --seed N         of parameters and batches (default 1)\n"
	"  --text PATTERN   files to learn, may be repeated (default: the licence texts of Debian)\n"
	"  --id-file PATH   where rank 0 leaves the ncclUniqueId (default: in TMPDIR, by MASTER_PORT;\n"
	"                   not used when NCCL_COMM_ID is set)\n"
	"  --log N          a line every N steps, from local rank 0 (default: none)\n"
	"  --json FILE      the result, from local rank 0\n"
	"  --help\n";

static double number_option(const char *name, const char *text, double low, double high)
{
	char *end;
	double x;

	errno = 0;
	x = strtod(text, &end);
	if (errno || end == text || *end || !(x >= low && x <= high)) {
		fprintf(stderr, "trainer: --%s %s: a number from %g to %g is wanted\n", name, text,
			low, high);
		exit(2);
	}
	return x;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"steps", 1, NULL, 's'},   {"batch", 1, NULL, 'b'},     {"hidden", 1, NULL, 'w'},
		{"layers", 1, NULL, 'l'},  {"bucket-mb", 1, NULL, 'm'}, {"rate", 1, NULL, 'r'},
		{"seed", 1, NULL, 'e'},    {"layer-ms", 1, NULL, 'y'},  {"text", 1, NULL, 't'},
		{"id-file", 1, NULL, 'i'}, {"json", 1, NULL, 'j'},      {"log", 1, NULL, 'o'},
		{"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0},
	};
	int which, c;

	while ((c = getopt_long(argc, argv, "", longs, &which)) != -1) {
		switch (c) {
		case 's':
			options.steps = (int)number_option("steps", optarg, 1, 1e6);
			break;
		case 'b':
			options.batch = (int)number_option("batch", optarg, 1, 65536);
			break;
		case 'w':
			options.hidden = (int)number_option("hidden", optarg, 1, 65536);
			break;
		case 'l':
			options.layers =
				(int)number_option("layers", optarg, 1, MODEL_MAX_LAYERS - 1);
			break;
		case 'm':
			options.bucket_mb = number_option("bucket-mb", optarg, 0, 1e6);
			break;
		case 'r':
			options.rate = number_option("rate", optarg, 0, 1e3);
			break;
		case 'y':
			options.layer_ms = number_option("layer-ms", optarg, 0, 1e4);
			break;
		case 'e':
			options.seed = (uint64_t)number_option("seed", optarg, 0, 9e15);
			break;
		case 't':
			if (options.n_texts < sizeof(options.texts) / sizeof(options.texts[0]))
				options.texts[options.n_texts++] = optarg;
			break;
		case 'i':
			options.id_file = optarg;
			break;
		case 'j':
			options.json = optarg;
			break;
		case 'o':
			options.log = (int)number_option("log", optarg, 0, 1e6);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "trainer: unexpected argument %s\n", argv[optind]);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct trainer t;
	pthread_t watchdog;
	float first, loss;
	int status;

	parse(argc, argv);
	t.rank = rank_for_messages = number_from_env("RANK", 0);
	t.world = number_from_env("WORLD_SIZE", 1);
	t.local_rank = number_from_env("LOCAL_RANK", t.rank);
	if (t.rank >= t.world) {
		fprintf(stderr, "trainer: RANK=%d is not below WORLD_SIZE=%d\n", t.rank, t.world);
		return 2;
	}
	set_up(&t);
	if (pthread_create(&watchdog, NULL, watch, &t) != 0)
		die("watchdog", "no thread");
	CUDA(cudaStreamSynchronize(t.communication));
	first = evaluate(&t);
	train(&t);
	loss = evaluate(&t);
	atomic_store(&t.is_over, 1);
	pthread_join(watchdog, NULL);
	status = report(&t, first, loss);
	tear_down(&t);
	return status;
}
