/* See emulated-driver.h. */
#include "tests/driver/emulated-driver.h"

#include <cuda_runtime_api.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

struct emulated_graph {
	cudaGraphExec_t exec;
	unsigned int n;
};

static struct stream {
	cudaStream_t handle;
	sem_t go, answered;
	bool has_moved;
	unsigned int n; /* things that are queued */
	struct emulated_graph *capturing;
} streams[EMULATED_STREAMS];

/* Kept: a graph may run it again. */
struct item {
	struct item *next;
	struct stream *stream;
	_Atomic uint32_t *wait_at; /* NULL: it does not wait */
	uint32_t value;
};
static struct item *items;

struct cuda_driver emulated_driver;

static void hold(void *arg)
{
	const struct item *item = arg;
	struct stream *s = item->stream;

	sem_wait(&s->go);
	while (item->wait_at && (int32_t)(atomic_load(item->wait_at) - item->value) < 0) {
		s->has_moved = false;
		sem_post(&s->answered);
		sem_wait(&s->go);
	}
}

static void answer(void *arg)
{
	struct stream *s = arg;

	s->has_moved = true;
	sem_post(&s->answered);
}

static void around(CUstream handle, void *wait_at, uint32_t value, int is_end)
{
	struct stream *s = streams;
	struct item *item;

	while (s < streams + EMULATED_STREAMS && s->handle != handle)
		s++;
	if (s == streams + EMULATED_STREAMS)
		return;
	if (is_end) {
		cudaLaunchHostFunc(handle, answer, s);
		s->n += !s->capturing;
		if (s->capturing)
			s->capturing->n++;
		return;
	}
	item = malloc(sizeof(*item));
	if (!item)
		abort();
	*item = (struct item){items, s, wait_at, value};
	items = item;
	cudaLaunchHostFunc(handle, hold, item);
}

int emulated_open(struct err *err)
{
	as_driver_around = around;
	return cuda_driver_find(&emulated_driver, err);
}

CUstream emulated_stream(unsigned int i)
{
	struct stream *s = &streams[i];

	if (!s->handle && (cudaStreamCreateWithFlags(&s->handle, cudaStreamNonBlocking) ||
			   sem_init(&s->go, 0, 0) || sem_init(&s->answered, 0, 0)))
		abort();
	return s->handle;
}

bool emulated_step(unsigned int i)
{
	struct stream *s = &streams[i];

	if (!s->n)
		return false;
	sem_post(&s->go);
	sem_wait(&s->answered);
	s->n -= s->has_moved;
	return s->has_moved;
}

unsigned int emulated_run(void)
{
	unsigned int n = 0, before;

	do {
		before = n;
		for (unsigned int i = 0; i < EMULATED_STREAMS; i++)
			while (emulated_step(i))
				n++;
	} while (n != before);
	return n;
}

bool emulated_is_empty(unsigned int i)
{
	return streams[i].n == 0;
}

void emulated_capture(unsigned int i)
{
	if (cudaStreamBeginCapture(emulated_stream(i), cudaStreamCaptureModeGlobal))
		abort();
	streams[i].capturing = calloc(1, sizeof(struct emulated_graph));
}

struct emulated_graph *emulated_end_capture(unsigned int i)
{
	struct emulated_graph *ret = streams[i].capturing;
	cudaGraph_t graph = NULL;
	bool is_good = !cudaStreamEndCapture(streams[i].handle, &graph) &&
		       !cudaGraphInstantiate(&ret->exec, graph, 0);

	streams[i].capturing = NULL;
	cudaGraphDestroy(graph);
	if (is_good)
		return ret;
	free(ret);
	return NULL;
}

void emulated_launch(unsigned int i, const struct emulated_graph *graph)
{
	if (cudaGraphLaunch(graph->exec, streams[i].handle))
		abort();
	streams[i].n += graph->n;
}

void emulated_graph_free(struct emulated_graph *graph)
{
	cudaGraphExecDestroy(graph->exec);
	free(graph);
}
