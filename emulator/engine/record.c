/* See record.h. The file is the header, then rows of fixed size, as they are in memory. Writing a
 * row costs a copy; record_flush() and a full buffer hand whole rows to the kernel and write the
 * header's counts over. The reader checks everything that a report uses as an index or a size, and
 * each row before it takes memory, so that a large file of rubbish takes none. When a writer died,
 * a part of the last row may be missing: is_truncated says so. */
#include "engine/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "engine/timing.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"

#define ROWS_MAX 32

struct record_writer {
	int fd; /* owned */
	struct record_header header;
	bool is_header_new, is_loss_new; /* to be written, to be told */
	uint64_t n_written;
	uint32_t n; /* rows that wait */
	struct record_row rows[ROWS_MAX];
};

static void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Return: how many of the @n bytes are written; of fewer *ret_error says why, a negative errno. */
static size_t write_at(int fd, const void *data, size_t n, uint64_t at, int *ret_error)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pwrite(fd, (const char *)data + done, n - done, (off_t)(at + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			*ret_error = r < 0 ? -errno : -EIO;
			break;
		}
		done += (size_t)r;
	}
	return done;
}

static uint64_t end_of(uint64_t n_rows)
{
	return sizeof(struct record_header) + n_rows * sizeof(struct record_row);
}

int record_create(const char *path, const struct record_header *h, struct record_writer **ret,
		  struct err *err)
{
	CLEANUP(freep) struct record_writer *w = calloc(1, sizeof(*w));
	CLEANUP(closep) int fd = -1;
	int r;

	if (!w)
		return err_set(err, ENOMEM, "no memory for the record");
	w->header = *h;
	w->header.magic = RECORD_MAGIC;
	w->header.header_bytes = sizeof(struct record_header);
	w->header.row_bytes = sizeof(struct record_row);
	w->header.model[sizeof(w->header.model) - 1] = '\0';
	w->header.layout[sizeof(w->header.layout) - 1] = '\0';
	w->header.data_for[sizeof(w->header.data_for) - 1] = '\0';

	/* O_EXCL: never the file of another run, and through no link */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return err_set(err, EEXIST,
			       "%s is there: the record of another run; choose another directory",
			       path);
	if (fd < 0)
		return err_set(err, errno, "cannot create the record %s: %s", path,
			       strerror(errno));
	if (write_at(fd, &w->header, sizeof(w->header), 0, &r) < sizeof(w->header)) {
		unlink(path); /* else the folder could not be taken again */
		return err_set(err, -r, "cannot write the record %s: %s", path, strerror(-r));
	}
	w->fd = steal_fd(&fd);
	*ret = steal_ptr(w);
	return 0;
}

static void lose(struct record_writer *w, int r)
{
	w->is_loss_new |= w->header.lost_errno == 0;
	if (w->header.lost_errno == 0)
		w->header.lost_errno = (uint32_t)-r;
	w->is_header_new = true;
}

static void write_rows(struct record_writer *w)
{
	size_t bytes = w->n * sizeof(w->rows[0]), done = 0, n;
	int r = 0;

	if (w->header.n_lost == 0)
		done = write_at(w->fd, w->rows, bytes, end_of(w->n_written), &r);
	n = done / sizeof(w->rows[0]);
	w->n_written += n;
	if (n < w->n) {
		if (r && ftruncate(w->fd, (off_t)end_of(w->n_written)) < 0)
			r = -errno; /* part of a row stays: told when it is read */
		lose(w, r);
		w->header.n_lost += w->n - n;
	}
	w->n = 0;
}

void record_write(struct record_writer *w, const struct record_row *row)
{
	if (!w)
		return;
	w->rows[w->n++] = *row;
	if (w->n == ROWS_MAX)
		write_rows(w);
}

void record_lose_note(struct record_writer *w, int r)
{
	if (!w)
		return;
	lose(w, r);
	w->header.n_lost_notes++;
}

void record_clock_error(struct record_writer *w, uint64_t ns)
{
	if (!w || ns <= w->header.clock_error_ns)
		return;
	w->header.clock_error_ns = ns;
	w->is_header_new = true;
}

int record_flush(struct record_writer *w)
{
	int r = 0;

	if (!w)
		return 0;
	if (w->n)
		write_rows(w);
	if (w->is_header_new) /* where even that fails it is tried again */
		w->is_header_new =
			write_at(w->fd, &w->header, sizeof(w->header), 0, &r) < sizeof(w->header);
	if (!w->is_loss_new)
		return 0;
	w->is_loss_new = false;
	return -(int)w->header.lost_errno;
}

int record_close(struct record_writer *w)
{
	int r = 0;

	if (w) {
		record_flush(w);
		r = close(w->fd) < 0 ? -errno : 0;
		free(w);
	}
	return r;
}

static int check_header(const struct record_header *h, struct err *err)
{
	if (h->magic == __builtin_bswap64(RECORD_MAGIC))
		return err_set(err, EINVAL,
			       "the record was written on a machine of the other byte order");
	if (h->magic != RECORD_MAGIC)
		return err_set(err, EINVAL, "not a record of nbox (its first 8 bytes differ)");
	if (h->header_bytes != sizeof(*h) || h->row_bytes != sizeof(struct record_row))
		return err_set(err, EINVAL,
			       "the record has a header of %u and rows of %u bytes, this nbox "
			       "%s reads %zu and %zu: read it with the version that wrote it",
			       h->header_bytes, h->row_bytes, NBOX_VERSION, sizeof(*h),
			       sizeof(struct record_row));
	if (!memchr(h->model, '\0', sizeof(h->model)))
		return err_set(err, EINVAL, "the record's model name does not end");
	if (!memchr(h->layout, '\0', sizeof(h->layout)))
		return err_set(err, EINVAL, "the record's layout does not end");
	if (!memchr(h->data_for, '\0', sizeof(h->data_for)))
		return err_set(err, EINVAL, "the record's list of data policies does not end");
	if (h->n_real > h->world_size)
		return err_set(err, EINVAL, "the record has %u real ranks in a world of %u",
			       h->n_real, h->world_size);
	return 0;
}

static int check_row(const struct record_row *r, uint64_t i, struct err *err)
{
	if (r->kind >= COLL_KINDS || r->dtype >= COLL_DTYPES || r->algo >= SCHED_ALGOS ||
	    r->how > SOLVE_SIM)
		return err_set(err, EINVAL,
			       "row %llu of the record has kind %u, type %u, algorithm %u, "
			       "solution %u: one of them does not exist",
			       (unsigned long long)i, r->kind, r->dtype, r->algo, r->how);
	if (r->rank >= r->n_ranks || r->n_real_ranks > r->n_ranks)
		return err_set(err, EINVAL,
			       "row %llu of the record is of rank %u, %u ranks real, of %u",
			       (unsigned long long)i, r->rank, r->n_real_ranks, r->n_ranks);
	if (!isfinite(r->model_ns) || !isfinite(r->injected_ns))
		return err_set(err, EINVAL, "row %llu of the record has a time that is no number",
			       (unsigned long long)i);
	return 0;
}

/* Adds @n rows that lie at @data, each checked before it takes memory. */
static int add_rows(struct record *rec, uint64_t *capacity, const char *data, uint64_t n,
		    struct err *err)
{
	for (uint64_t i = 0; i < n; i++) {
		struct record_row row;
		int r;

		memcpy(&row, data + i * sizeof(row), sizeof(row));
		r = check_row(&row, rec->n_rows, err);
		if (r)
			return r;
		if (rec->n_rows == *capacity) {
			struct record_row *grown =
				reallocarray(rec->rows, 2 * *capacity + 64, sizeof(row));

			if (!grown)
				return err_set(err, ENOMEM, "no memory for more than %llu rows",
					       (unsigned long long)rec->n_rows);
			rec->rows = grown;
			*capacity = 2 * *capacity + 64;
		}
		rec->rows[rec->n_rows++] = row;
	}
	return 0;
}

/* Return: 0; -ENOENT and other negative errno with the sentence. */
static int open_file(const char *path, FILE **ret, struct err *err)
{
	int fd = file_open(path, err);

	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "rb");
	if (!*ret) {
		close(fd);
		return err_set(err, ENOMEM, "no memory for the record %s", path);
	}
	errno = 0;
	return 0;
}

static int load_header(FILE *f, struct record_header *ret, struct err *err)
{
	size_t n = fread(ret, 1, sizeof(*ret), f);

	if (n == sizeof(*ret))
		return check_header(ret, err);
	return ferror(f) ? err_set(err, errno ? errno : EIO, "cannot read it: %s", strerror(errno))
			 : err_set(err, EINVAL, "%zu bytes are too few for a record", n);
}

/* The file may grow meanwhile: what is there at the end counts. */
static int load(FILE *f, struct record *ret, struct err *err)
{
	char rows[512 * sizeof(struct record_row)];
	struct record rec = {0};
	uint64_t capacity = 0;
	size_t n = sizeof(rows);
	int r = load_header(f, &rec.header, err);

	while (r == 0 && n == sizeof(rows)) {
		n = fread(rows, 1, sizeof(rows), f);
		r = add_rows(&rec, &capacity, rows, n / sizeof(struct record_row), err);
	}
	if (r == 0 && ferror(f))
		r = err_set(err, errno ? errno : EIO, "cannot read it: %s", strerror(errno));
	rec.is_truncated = n % sizeof(struct record_row) != 0;
	if (r == 0)
		*ret = rec;
	else
		record_deinit(&rec);
	return r;
}

int record_load_header(const char *path, struct record_header *ret, struct err *err)
{
	CLEANUP(fclosep) FILE *f = NULL;
	int r = open_file(path, &f, err);

	if (r == 0 && (r = load_header(f, ret, err)) < 0)
		err_prefix(err, r, "%s", path);
	return r;
}

int record_load(const char *path, struct record *ret, struct err *err)
{
	CLEANUP(fclosep) FILE *f = NULL;
	int r = open_file(path, &f, err);

	if (r == 0 && (r = load(f, ret, err)) < 0)
		err_prefix(err, r, "%s", path);
	return r;
}

int record_parse(const void *data, uint64_t n, struct record *ret, struct err *err)
{
	CLEANUP(fclosep) FILE *f = fmemopen((void *)(uintptr_t)data, n, "rb");

	return f ? load(f, ret, err) : err_set(err, ENOMEM, "no memory for the record");
}

void record_deinit(struct record *r)
{
	free(r->rows);
	r->rows = NULL;
	r->n_rows = 0;
}
