/* See record-read.h. The file is unpacked frame by frame; a frame's size is known, and bounded,
 * before it takes memory, and in all a file unpacks to no more than PLAIN_PER_PACKED times its
 * size: no run's record does. */
#include "engine/record-read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "engine/record-rows.h"
#include "engine/record.h"

#define READ_BYTES (64 << 10)
#define PLAIN_PER_PACKED 100
#define PLAIN_ALWAYS (1 << 20) /* bytes, however well they are packed */

struct input {
	FILE *file;   /* owned */
	char *packed; /* owned; bytes [0, n) of size were read, and [at, n) are to be unpacked */
	size_t n, at, size;
	char *plain; /* owned; the last frame */
	size_t plain_size;
	uint64_t n_packed, n_plain; /* in all */
};

static void input_deinit(struct input *in)
{
	if (in->file)
		fclose(in->file);
	free(in->packed);
	free(in->plain);
}

/* Reads on. Return: 1; 0 there is no more; negative errno with the sentence. */
static int fill(struct input *in, struct err *err)
{
	size_t n;

	if (in->at) {
		memmove(in->packed, in->packed + in->at, in->n - in->at);
		in->n -= in->at;
		in->at = 0;
	}
	if (in->size - in->n < READ_BYTES) {
		size_t size = 2 * in->size + READ_BYTES;
		char *grown = realloc(in->packed, size);

		if (!grown)
			return err_set(err, ENOMEM, "no memory for a frame of the record");
		in->packed = grown;
		in->size = size;
	}
	errno = 0;
	n = fread(in->packed + in->n, 1, in->size - in->n, in->file);
	in->n += n;
	if (n == 0 && ferror(in->file))
		return err_set(err, errno ? errno : EIO, "cannot read it: %s", strerror(errno));
	return n > 0;
}

static int damaged(const struct input *in, const char *why, struct err *err)
{
	return err_set(err, EINVAL, "the record is damaged after %llu bytes: %s",
		       (unsigned long long)in->n_packed, why);
}

/* Return: 1 the next frame has *ret_packed bytes and will have *ret_plain; 0 it is not whole;
 * negative errno with the sentence. */
static int next_frame(struct input *in, size_t *ret_packed, size_t *ret_plain, struct err *err)
{
	for (;;) {
		const char *at = in->packed + in->at;
		unsigned long long plain = ZSTD_getFrameContentSize(at, in->n - in->at);
		size_t n = ZSTD_findFrameCompressedSize(at, in->n - in->at);
		int r;

		if (plain != ZSTD_CONTENTSIZE_ERROR && plain > RECORD_FRAME_MAX)
			return damaged(in, "a frame of it has no size, or is too large", err);
		if (!ZSTD_isError(n)) {
			*ret_packed = n;
			*ret_plain = plain;
			return 1;
		}
		if (ZSTD_getErrorCode(n) != ZSTD_error_srcSize_wrong)
			return damaged(in, ZSTD_getErrorName(n), err);
		if (in->n - in->at > ZSTD_compressBound(RECORD_FRAME_MAX))
			return damaged(in, "a frame of it is too large", err);
		r = fill(in, err);
		if (r <= 0)
			return r;
	}
}

/* Unpacks a frame. Return: 1, it is in in->plain; 0 there is no whole one; negative errno with the
 * sentence. */
static int unpack(struct input *in, size_t *ret_n, struct err *err)
{
	size_t packed = 0, n = 0;
	int r = next_frame(in, &packed, &n, err);

	if (r <= 0)
		return r;
	if (in->n_plain + n > PLAIN_ALWAYS + PLAIN_PER_PACKED * (in->n_packed + packed))
		return damaged(in, "no run's rows can be packed so well", err);
	if (n > in->plain_size) {
		free(in->plain);
		in->plain_size = 0;
		in->plain = malloc(n);
		if (!in->plain)
			return err_set(err, ENOMEM, "no memory for a frame of the record");
		in->plain_size = n;
	}
	if (ZSTD_decompress(in->plain, in->plain_size, in->packed + in->at, packed) != n)
		return damaged(in, "a frame of it cannot be unpacked", err);
	in->at += packed;
	in->n_packed += packed;
	in->n_plain += n;
	*ret_n = n;
	return 1;
}

/* The magic, then the frame of the header. Return: 0; negative errno with the sentence. */
static int begin(struct input *in, struct rows *rows, struct err *err)
{
	size_t n = 0;
	int r = 1;

	while (r > 0 && in->n < RECORD_MAGIC_BYTES)
		r = fill(in, err);
	if (r < 0)
		return r;
	if (in->n >= 8 && memcmp(in->packed, "nboxrec1", 8) == 0)
		return err_set(err, EINVAL,
			       "the record has version 1, this nbox " NBOX_VERSION
			       " reads version 2: read it with the nbox that wrote it");
	if (in->n < RECORD_MAGIC_BYTES)
		return err_set(err, EINVAL, "%zu bytes are too few for a record", in->n);
	if (memcmp(in->packed, RECORD_MAGIC, RECORD_VERSION_AT) != 0)
		return err_set(err, EINVAL, "not a record of nbox (its first bytes differ)");
	if (in->packed[RECORD_VERSION_AT] != RECORD_MAGIC[RECORD_VERSION_AT])
		return err_set(
			err, EINVAL,
			"the record has another version than %c, which this nbox " NBOX_VERSION
			" reads: read it with the nbox that wrote it",
			RECORD_MAGIC[RECORD_VERSION_AT]);
	in->at = in->n_packed = RECORD_MAGIC_BYTES;
	r = unpack(in, &n, err);
	if (r == 0)
		return err_set(err, EINVAL, "the record ends before its header does");
	return r < 0 ? r : rows_add(rows, in->plain, n, err);
}

/* The file may grow meanwhile: what is there at the end counts. */
static int load(struct input *in, struct record *ret, struct err *err)
{
	struct rows rows = {.rec = ret};
	int r = begin(in, &rows, err);

	while (r == 0 && !rows.has_end) {
		size_t n = 0;

		r = unpack(in, &n, err);
		if (r == 0)
			break;
		r = r < 0 ? r : rows_add(&rows, in->plain, n, err);
	}
	ret->is_truncated = !rows.has_end;
	if (r == 0)
		rows_connect(&rows);
	else
		record_deinit(ret);
	return r;
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
	return 0;
}

int record_load_header(const char *path, struct record_header *ret, struct err *err)
{
	CLEANUP(input_deinit) struct input in = {0};
	struct record rec = {0};
	struct rows rows = {.rec = &rec};
	int r = open_file(path, &in.file, err);

	if (r == 0 && (r = begin(&in, &rows, err)) < 0)
		err_prefix(err, r, "%s", path);
	if (r == 0)
		*ret = rec.header;
	record_deinit(&rec);
	return r;
}

int record_load(const char *path, struct record *ret, struct err *err)
{
	CLEANUP(input_deinit) struct input in = {0};
	struct record rec = {0};
	int r = open_file(path, &in.file, err);

	if (r == 0 && (r = load(&in, &rec, err)) < 0)
		err_prefix(err, r, "%s", path);
	if (r == 0)
		*ret = rec;
	return r;
}

int record_parse(const void *data, uint64_t n, struct record *ret, struct err *err)
{
	CLEANUP(input_deinit)
	struct input in = {.file = fmemopen((void *)(uintptr_t)data, n, "rb")};
	struct record rec = {0};
	int r = in.file ? load(&in, &rec, err) : err_set(err, ENOMEM, "no memory for the record");

	if (r == 0)
		*ret = rec;
	return r;
}
