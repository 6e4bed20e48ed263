/* See json-file.h. */
#include "nbox/json/json-file.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"

#define FILE_MAX (1 << 20) /* bytes; those of nbox have some thousands */

void json_freep(json_t **o)
{
	json_decref(*o);
}

int json_file_read(const char *path, json_t **ret_json, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	json_error_t why;
	json_t *o;
	size_t n;
	int r = file_read(path, FILE_MAX, &text, &n, err);

	if (r < 0)
		return r;
	o = json_loadb(text, n, 0, &why);
	if (!o)
		return err_set(err, EINVAL, "%s: line %d: %s", path, why.line, why.text);
	*ret_json = o;
	return 0;
}

int json_file_write(json_t *o, const char *path, struct err *err)
{
	FILE *to;
	int r = o ? file_create(path, &to, err) : err_set(err, ENOMEM, "out of memory");

	if (r == 0) {
		json_dumpf(o, to, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
		fputc('\n', to);
		r = file_finish(to, path, err);
	}
	json_decref(o);
	return r;
}

void json_text(const json_t *o, const char *key, char *buf, size_t size)
{
	const char *text = json_string_value(json_object_get(o, key));

	snprintf(buf, size, "%s", text ? text : "");
	plain_text(buf);
}
