/* Writes the record of a run (record.h). A row costs a copy; record_flush() and a full buffer pack
 * what has come and hand it to the kernel. After a write that failed no other row is written, so
 * that the record has no holes; lost ops are counted. NULL is a writer, too, which writes nothing:
 * no record is wanted. */
#pragma once

#include "base/err.h"
#include "engine/record.h"

struct record_writer;
/* Never in place of a file that is there, and through no link. Return: 0; negative errno with the
 * sentence. */
int record_create(const char *path, const struct record_header *h, struct record_writer **ret,
		  struct err *err);
/* Before the first op of the communicator; numbers ascend. */
void record_comm(struct record_writer *w, const struct record_comm *comm);
/* What the job told of itself (engine/delay-job.h); again where another follows. */
void record_job(struct record_writer *w, const char *texts, size_t bytes);
void record_op(struct record_writer *w, const struct record_op *op);
void record_point(struct record_writer *w, const struct record_point *point);
void record_lose_note(struct record_writer *w,
		      int error); /* a line of notes is lost to @error, a negative errno */
void record_clock_error(struct record_writer *w, uint64_t ns); /* of one worker's clock */
void record_debt(struct record_writer *w, double ns);          /* of one op's end at one rank */
/* Return: 0; a negative errno, once a run: rows are lost from now on. */
int record_flush(struct record_writer *w);
/* Call record_flush() before it: that one says which rows are lost. Return: 0; a negative errno:
 * the file system refused at the end what it had taken (a quota, over NFS), and nobody can say how
 * many rows that are. */
int record_close(struct record_writer *w);
