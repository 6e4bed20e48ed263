/* See record-write.h. The rows that wait are packed into one frame of zstd. Behind it lies the last
 * row, RECORD_END, in a frame of its own that is not packed, so that it always has the same size:
 * the next write begins where it lies. Where that write fails, RECORD_END takes its place again,
 * which needs no more room on the disk, and says what is lost. */
#include "engine/record-write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "engine/record.h"

#define FRAME_BYTES (16 << 10) /* a frame that has as many is written */
#define LEVEL 1

#define END_BYTES (sizeof(struct record_row) + sizeof(struct record_end))
#define END_HEAD 9 /* of a frame of zstd with one raw block */

struct record_writer {
	int fd;      /* owned */
	uint64_t at; /* where the next frame goes, and RECORD_END lies */
	struct record_end end;
	bool is_end_new, is_loss_new; /* to be written, to be told */
	bool is_over;                 /* a row is lost: none is written any more */
	uint64_t n_ops;               /* that wait */
	ZSTD_CCtx *zstd;              /* owned */
	char *plain, *packed;         /* owned; rows that wait, and room for them as a frame */
	size_t n_plain, size;         /* size: of plain */
};

/* Return: 0; a negative errno. */
static int write_at(int fd, const char *data, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = pwrite(fd, data + done, n - done, (off_t)(at + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		done += (size_t)r;
	}
	return 0;
}

/* --- frames ------------------------------------------------------------------------ */

/* RECORD_END as a frame. Return: its bytes. */
static size_t put_end(const struct record_writer *w, char *to)
{
	const struct record_row row = {RECORD_END, END_BYTES, sizeof(w->end), 0};
	const char head[END_HEAD] = {0x28,
				     (char)0xb5,
				     0x2f,
				     (char)0xfd, /* magic */
				     0x20,
				     END_BYTES, /* one segment, of that many bytes */
				     (char)(END_BYTES << 3 | 1),
				     END_BYTES >> 5,
				     0}; /* raw, last */

	memcpy(to, head, sizeof(head));
	memcpy(to + sizeof(head), &row, sizeof(row));
	memcpy(to + sizeof(head) + sizeof(row), &w->end, sizeof(w->end));
	return sizeof(head) + END_BYTES;
}

static void lose(struct record_writer *w, int r)
{
	w->is_loss_new |= w->end.lost_errno == 0;
	if (w->end.lost_errno == 0)
		w->end.lost_errno = (uint32_t)-r;
	w->is_end_new = true;
}

/* The rows that wait are lost, and all that come. */
static void lose_rows(struct record_writer *w, int r)
{
	lose(w, r);
	w->is_over = true;
	w->end.n_lost += w->n_ops;
	w->n_plain = w->n_ops = 0;
}

static void write_end(struct record_writer *w)
{
	char end[END_HEAD + END_BYTES];

	/* where even that fails it is tried again */
	w->is_end_new = write_at(w->fd, end, put_end(w, end), w->at) < 0;
}

/* Return: 0; a negative errno. */
static int try_frame(struct record_writer *w)
{
	size_t n = ZSTD_compress2(w->zstd, w->packed, ZSTD_compressBound(w->size), w->plain,
				  w->n_plain);
	int r;

	if (ZSTD_isError(n))
		return -ENOMEM;
	r = write_at(w->fd, w->packed, n + put_end(w, w->packed + n), w->at);
	w->at += r < 0 ? 0 : n;
	return r;
}

static void write_frame(struct record_writer *w)
{
	int r = w->is_over ? 0 : try_frame(w);

	if (r < 0) {
		lose_rows(w, r);
		write_end(w);
		r = ftruncate(w->fd, (off_t)(w->at + END_HEAD + END_BYTES));
		(void)r; /* nobody reads what stays behind RECORD_END */
	} else if (w->is_over) {
		lose_rows(w, r);
	} else {
		w->is_end_new = false;
		w->n_plain = w->n_ops = 0;
	}
}

/* --- rows -------------------------------------------------------------------------- */

struct list {
	const void *data;
	uint32_t n, entry_bytes;
};

/* Return: false: there is no memory. */
static bool make_room(struct record_writer *w, size_t bytes)
{
	char *plain, *packed;

	if (bytes <= w->size)
		return true;
	plain = realloc(w->plain, bytes);
	w->plain = plain ? plain : w->plain;
	packed = realloc(w->packed, ZSTD_compressBound(bytes) + END_HEAD + END_BYTES);
	w->packed = packed ? packed : w->packed;
	if (plain && packed)
		w->size = bytes;
	return plain && packed;
}

static void put(struct record_writer *w, const void *data, size_t bytes)
{
	memcpy(w->plain + w->n_plain, data, bytes);
	memset(w->plain + w->n_plain + bytes, 0, record_padded(bytes) - bytes);
	w->n_plain += record_padded(bytes);
}

static void add(struct record_writer *w, enum record_kind kind, const void *fields, uint32_t bytes,
		const struct list *lists, uint32_t n_lists)
{
	struct record_row row = {kind, sizeof(row) + record_padded(bytes), record_padded(bytes),
				 n_lists};

	for (uint32_t i = 0; i < n_lists; i++)
		row.bytes += (uint32_t)sizeof(struct record_list) +
			     record_padded((uint64_t)lists[i].n * lists[i].entry_bytes);
	w->n_ops += kind == RECORD_OP;
	if (!make_room(w, w->n_plain + row.bytes)) {
		lose_rows(w, -ENOMEM);
		return;
	}
	put(w, &row, sizeof(row));
	if (bytes)
		put(w, fields, bytes);
	for (uint32_t i = 0; i < n_lists; i++) {
		const struct record_list l = {lists[i].n, lists[i].entry_bytes};

		put(w, &l, sizeof(l));
		if (l.n)
			put(w, lists[i].data, (size_t)l.n * l.entry_bytes);
	}
	if (w->n_plain >= FRAME_BYTES)
		write_frame(w);
}

void record_comm(struct record_writer *w, const struct record_comm *c)
{
	const struct list lists[] = {{c->members, c->n_members, sizeof(*c->members)},
				     {c->real, c->n_real, sizeof(*c->real)}};

	if (w)
		add(w, RECORD_COMM, c, RECORD_COMM_BYTES, lists, ARRAY_SIZE(lists));
}

void record_job(struct record_writer *w, const char *texts, size_t bytes)
{
	const struct list list = {texts, (uint32_t)bytes, 1};

	if (w)
		add(w, RECORD_JOB, NULL, 0, &list, 1);
}

void record_op(struct record_writer *w, const struct record_op *op)
{
	const struct list lists[] = {{op->deps, op->n_deps, sizeof(*op->deps)},
				     {op->calls, op->n_calls, sizeof(*op->calls)}};

	if (w)
		add(w, RECORD_OP, op, RECORD_OP_BYTES, lists, ARRAY_SIZE(lists));
}

void record_point(struct record_writer *w, const struct record_point *p)
{
	const struct list deps = {p->deps, p->n_deps, sizeof(*p->deps)};

	if (w)
		add(w, RECORD_POINT, p, RECORD_POINT_BYTES, &deps, 1);
}

/* --- the file ---------------------------------------------------------------------- */

static struct record_writer *writer_free(struct record_writer *w)
{
	if (w) {
		ZSTD_freeCCtx(w->zstd);
		free(w->plain);
		free(w->packed);
		free(w);
	}
	return NULL;
}

static void writer_freep(struct record_writer **w)
{
	writer_free(*w);
}

/* Return: 0; a negative errno. */
static int begin(struct record_writer *w, const struct record_header *header)
{
	struct record_header h = *header;
	int r = write_at(w->fd, RECORD_MAGIC, RECORD_MAGIC_BYTES, 0);

	h.model[sizeof(h.model) - 1] = '\0';
	h.layout[sizeof(h.layout) - 1] = '\0';
	h.data_for[sizeof(h.data_for) - 1] = '\0';
	w->at = RECORD_MAGIC_BYTES;
	add(w, RECORD_HEADER, &h, sizeof(h), NULL, 0);
	r = r < 0 ? r : try_frame(w);
	w->n_plain = 0;
	return r;
}

int record_create(const char *path, const struct record_header *h, struct record_writer **ret,
		  struct err *err)
{
	CLEANUP(writer_freep) struct record_writer *w = calloc(1, sizeof(*w));
	CLEANUP(closep) int fd = -1;
	int r;

	if (!w || !(w->zstd = ZSTD_createCCtx()) || !make_room(w, 2 * FRAME_BYTES))
		return err_set(err, ENOMEM, "no memory for the record");
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
	/* O_EXCL: never the file of another run, and through no link */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return err_set(err, EEXIST,
			       "%s is there: the record of another run; choose another directory",
			       path);
	if (fd < 0)
		return err_set(err, errno, "cannot create the record %s: %s", path,
			       strerror(errno));
	w->fd = fd;
	r = begin(w, h);
	if (r < 0) {
		unlink(path); /* else the folder could not be taken again */
		return err_set(err, -r, "cannot write the record %s: %s", path, strerror(-r));
	}
	steal_fd(&fd);
	*ret = steal_ptr(w);
	return 0;
}

void record_lose_note(struct record_writer *w, int r)
{
	if (!w)
		return;
	lose(w, r);
	w->end.n_lost_notes++;
}

void record_clock_error(struct record_writer *w, uint64_t ns)
{
	if (!w || ns <= w->end.clock_error_ns)
		return;
	w->end.clock_error_ns = ns;
	w->is_end_new = true;
}

void record_debt(struct record_writer *w, double ns)
{
	if (!w)
		return;
	w->end.n_debts++;
	w->end.debt_ns += (uint64_t)ns;
	w->is_end_new = true;
}

int record_flush(struct record_writer *w)
{
	if (!w)
		return 0;
	if (w->n_plain)
		write_frame(w);
	if (w->is_end_new)
		write_end(w);
	if (!w->is_loss_new)
		return 0;
	w->is_loss_new = false;
	return -(int)w->end.lost_errno;
}

int record_close(struct record_writer *w)
{
	int r = 0;

	if (w) {
		record_flush(w);
		r = close(w->fd) < 0 ? -errno : 0;
		writer_free(w);
	}
	return r;
}
