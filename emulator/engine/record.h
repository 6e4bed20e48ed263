/* The record of a run: one row of fixed size for each op and real rank, in a file with a versioned
 * header. Rows are appended, and the file can be read while it grows. Reports are made from it.
 * Native byte order, checked by a magic. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define RECORD_NOTES \
	"notes.txt" /* beside it, where workers had something to say of the run: a line each */
#define RECORD_ABORTS                                                                            \
	"aborts.txt" /* beside it, where communicators were aborted: a line each, the first ones \
		      */
#define RECORD_ENDS \
	"ends.txt" /* beside it, where workers failed or vanished: a line each, the first ones */
#define RECORD_MAGIC UINT64_C(0x31636572786f626e) /* "nboxrec1" */

struct record_header {
	uint64_t magic;
	uint32_t header_bytes, row_bytes;
	uint32_t world_size, n_nodes, gpus_per_node, n_real;
	uint32_t exchange, data;
	uint64_t seed;
	uint64_t start_ns;      /* monotonic clock of the daemon */
	uint64_t start_unix_ns; /* wall clock of the same moment */
	char model[512];        /* terminated; model and what-ifs */
	char layout[256];       /* terminated; declared layouts, separated by ';' */
	char data_for[256];     /* terminated; exceptions from data: dp=fill, separated by ';' */
	/* Written over while the run goes on, which needs no more room on the disk: */
	uint64_t n_lost;         /* rows that could not be written: the last ones of the run */
	uint64_t clock_error_ns; /* the most that the clock of a worker on another host may have
				    been wrong by in an op; 0: all have nboxd's */
	uint32_t n_lost_notes;   /* lines of the text files beside it that could not be written */
	uint32_t
		lost_errno; /* why the first of them or of the rows could not; 0: nothing is lost */
};

struct record_row {
	uint64_t number; /* of the op in the run */
	uint64_t seq;    /* of the op in its communicator; SendRecv: of this rank's own */
	uint32_t comm, rank, world_rank;
	uint32_t kind, dtype, algo;
	uint32_t n_ranks, n_real_ranks;
	uint32_t how;   /* enum solve_how */
	uint32_t flags; /* RECORD_* */
	uint64_t bytes;
	uint64_t arrive_ns;     /* this rank's own arrival */
	uint64_t start_ns;      /* last arrival of all members, virtual ones too */
	uint64_t due_ns;        /* end of the op in the virtual cluster */
	uint64_t release_ns;    /* when the gate really opened, by the same clock as due_ns */
	uint64_t local_done_ns; /* real op among the real members was over; 0 unknown */
	double model_ns, injected_ns;
	uint64_t n_messages; /* that crossed the link for this rank */
};

/* RECORD_OF_MODEL: the model said how long the whole op takes; else that follows from the messages
 * of row.algo. */
enum {
	RECORD_GUESSED_MEMBERS = 1,
	RECORD_REPLAYED = 2,
	RECORD_BELOW_BOUND = 4,
	RECORD_OF_MODEL = 8
};

/* How the communicator's members are known (members/members.h), also in row.flags:
 * enum members_source, enum members_sure, and the axes of the layout in the header. */
static inline uint32_t record_members_flags(uint32_t source, uint32_t sure, uint32_t axes)
{
	return (source & 0xff) << 8 | (sure & 3) << 16 | (axes & 0x3ff) << 18;
}
static inline uint32_t record_source(uint32_t flags)
{
	return flags >> 8 & 0xff;
}
static inline uint32_t record_sure(uint32_t flags)
{
	return flags >> 16 & 3;
}
static inline uint32_t record_axes(uint32_t flags)
{
	return flags >> 18 & 0x3ff;
}

/* NULL is a writer, too, which writes nothing: no record is wanted. */
struct record_writer;
int record_create(const char *path, const struct record_header *h, struct record_writer **ret,
		  struct err *err);
void record_write(struct record_writer *w, const struct record_row *row);
void record_lose_note(struct record_writer *w,
		      int error); /* a line of notes is lost to @error, a negative errno */
void record_clock_error(struct record_writer *w, uint64_t ns); /* of one worker's clock */
/* After a row that could not be written no other is written, so that the record has no holes; the
 * lost rows are counted. Return: 0; a negative errno, once a run: rows are lost from now on. */
int record_flush(struct record_writer *w);
/* Call record_flush() before it: that one says which rows are lost. Return: 0; a negative errno:
 * the file system refused at the end what it had taken (a quota, over NFS), and nobody can say how
 * many rows that are. */
int record_close(struct record_writer *w);

struct record {
	struct record_header header;
	struct record_row *rows; /* owned */
	uint64_t n_rows;
	int is_truncated; /* the last row was cut off (the writer died) */
};
/* The header alone. Return: 0; negative errno with the sentence. */
int record_load_header(const char *path, struct record_header *ret, struct err *err);
int record_load(const char *path, struct record *ret, struct err *err); /* fuzzed */
/* The same from memory, for tests. */
int record_parse(const void *data, uint64_t n, struct record *ret, struct err *err);
void record_deinit(struct record *r);
