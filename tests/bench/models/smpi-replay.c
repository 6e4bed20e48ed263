/* Plays one op's schedule, message by message, as an MPI program: for SMPI, which simulates the
 * network. Compiled by smpicc together with emulator/core/schedule; ./scripts/bench models runs it.
 *
 * usage: smpi-replay KIND ALGO BYTES CHUNK CHANNELS SLICES
 *
 * Prints the simulated seconds of the last rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "schedule/schedule.h"

/* A thread of the schedule: its step, and the receives of it that are not there yet. */
struct thread {
	struct sched_step step;
	uint64_t at, n;
	uint32_t n_missing;
};

static struct sched s;
static char *buffer; /* of all messages: nobody reads them */
static MPI_Request *sends;
static size_t n_sends, capacity;

static void send_all(const struct sched_step *t)
{
	for (uint32_t i = 0; i < t->n_send; i++) {
		if (n_sends == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			sends = realloc(sends, capacity * sizeof(*sends));
		}
		MPI_Isend(buffer, (int)t->bytes, MPI_BYTE, (int)t->send[i], t->send_lane,
			  MPI_COMM_WORLD, &sends[n_sends++]);
	}
}

/* Posts the receives of the thread's step; steps without any are done at once. */
static void go_on(struct thread *t, uint32_t rank, uint32_t number, MPI_Request *receives)
{
	for (; t->at < t->n; t->at++) {
		sched_step(&s, rank, number, t->at, &t->step);
		for (uint32_t i = 0; i < t->step.n_recv; i++)
			MPI_Irecv(buffer, (int)sched_max_step_bytes(&s), MPI_BYTE,
				  (int)t->step.recv[i], t->step.recv_lane, MPI_COMM_WORLD,
				  &receives[number * SCHED_FAN + i]);
		t->n_missing = t->step.n_recv;
		if (t->n_missing)
			return;
		send_all(&t->step);
	}
}

static void play(uint32_t rank)
{
	uint32_t n = sched_n_threads(&s, rank);
	MPI_Request *receives = malloc(n * SCHED_FAN * sizeof(*receives));
	struct thread *threads = calloc(n, sizeof(*threads));

	for (uint32_t i = 0; i < n * SCHED_FAN; i++)
		receives[i] = MPI_REQUEST_NULL;
	for (uint32_t i = 0; i < n; i++) {
		threads[i].n = sched_n_steps(&s, rank, i);
		go_on(&threads[i], rank, i, receives);
	}
	for (;;) {
		struct thread *t;
		int done;

		MPI_Waitany((int)(n * SCHED_FAN), receives, &done, MPI_STATUS_IGNORE);
		if (done == MPI_UNDEFINED)
			break;
		t = &threads[done / SCHED_FAN];
		if (--t->n_missing)
			continue;
		send_all(&t->step);
		t->at++;
		go_on(t, rank, (uint32_t)done / SCHED_FAN, receives);
	}
	MPI_Waitall((int)n_sends, sends, MPI_STATUSES_IGNORE);
	free(receives);
	free(threads);
}

int main(int argc, char **argv)
{
	struct err err = {""};
	double begin, mine, last;
	int rank, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	s = (struct sched){.kind = (enum coll_kind)coll_kind_parse(argv[1]),
			   .algo = (enum sched_algo)sched_algo_parse(argv[2]),
			   .n_ranks = (uint32_t)n,
			   .ranks_per_node = 1,
			   .n_channels = (uint32_t)atoi(argv[5]),
			   .elem_bytes = 4,
			   .bytes = strtoull(argv[3], NULL, 10),
			   .chunk_bytes = strtoull(argv[4], NULL, 10),
			   .slices = (uint32_t)atoi(argv[6])};
	if (argc != 7 || sched_init(&s, &err) < 0) {
		fprintf(stderr, "smpi-replay: %s\n", err.text);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	buffer = SMPI_SHARED_MALLOC(sched_max_step_bytes(&s) + 1);
	begin = MPI_Wtime();
	play((uint32_t)rank);
	mine = MPI_Wtime() - begin;
	MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.12g\n", last);
	SMPI_SHARED_FREE(buffer);
	MPI_Finalize();
	return 0;
}
