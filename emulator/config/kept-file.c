/* See kept-file.h. */
#include "config/kept-file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "fabric/read/open.h"

#define KEPT_MAX_BYTES (16u << 20) /* no reader of such a file takes more */

static const enum option_id ids[] = {CONFIG_FABRIC, CONFIG_MODEL, CONFIG_LINKS, CONFIG_ALLTOALL};

/* The value of @key, as in "file=", among a model's parameters. */
static const char *parameter(const char *text, const char *key, size_t *ret_n)
{
	const char *at = text;

	while ((at = strstr(at, key)) && (at == text || !strchr(":,", at[-1])))
		at++;
	if (!at)
		return NULL;
	at += strlen(key);
	*ret_n = strcspn(at, ",");
	return at;
}

/* The file among a model's parameters. */
static const char *file_parameter(const char *text, size_t *ret_n)
{
	const char *file = parameter(text, "file=", ret_n);

	return file ? file : parameter(text, "decisions=", ret_n);
}

/* Whether all of the option's text is a file. */
static bool is_file(enum option_id id, const char *text)
{
	return (id == CONFIG_FABRIC && fabric_is_file(text)) ||
	       (id == CONFIG_ALLTOALL && strcmp(text, "none") != 0);
}

const char *kept_file(const struct config *c, enum option_id id, size_t *ret_n)
{
	const char *text = config_text(c, id);

	if (text && (id == CONFIG_MODEL || id == CONFIG_LINKS))
		return file_parameter(text, ret_n);
	if (!text || !is_file(id, text))
		return NULL;
	*ret_n = strlen(text);
	return text;
}

/* Return: 0; -ENOMEM. */
static int put_beside(struct config *c, enum option_id id, int n_folder, const char *path)
{
	struct config_value *v = &c->values[id];
	char *text = v->source == SOURCE_FILE && v->n_items ? v->items[0].text : NULL, *put;
	CLEANUP(freep) char *beside = NULL;
	size_t n = text ? strlen(text) : 0;
	/* a fabric may be called like its file */
	const char *file = !text ? NULL
			   : id == CONFIG_FABRIC || id == CONFIG_ALLTOALL
				   ? text
				   : file_parameter(text, &n);

	if (!file || *file == '/')
		return 0;
	if (asprintf(&beside, "%.*s/%.*s", n_folder, path, (int)n, file) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	if (!(id == CONFIG_FABRIC && fabric_is_file(text)) && access(beside, F_OK) < 0)
		return 0;
	if (asprintf(&put, "%.*s%s%s", (int)(file - text), text, beside, file + n) < 0)
		return -ENOMEM;
	free(text);
	v->items[0].text = put;
	return 0;
}

int kept_files_beside(struct config *c, const char *path)
{
	const char *slash = strrchr(path, '/');
	int r = 0;

	for (size_t i = 0; slash && r == 0 && i < ARRAY_SIZE(ids); i++)
		r = put_beside(c, ids[i], (int)(slash - path), path);
	return r;
}

/* "config-model/NAME" of the file @file. */
static void name_copy(enum option_id id, const char *file, size_t n, char *buf, size_t size)
{
	const char *slash = memrchr(file, '/', n);
	size_t folder = slash ? (size_t)(slash + 1 - file) : 0;

	snprintf(buf, size, "config-%s/%.*s", options[id].name, (int)(n - folder), file + folder);
}

static int keep(const char *from, const char *to)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;
	FILE *f;
	int r = file_read(from, KEPT_MAX_BYTES, &text, &n, NULL);

	if (r < 0)
		return r;
	f = fopen(to, "we");
	if (!f)
		return -errno;
	fwrite(text, 1, n, f);
	return file_close(f);
}

int kept_files_keep(const struct config *c, const char *dir)
{
	char from[PATH_MAX], name[NAME_MAX + 32], to[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ids); i++) {
		size_t n;
		const char *file = kept_file(c, ids[i], &n);

		if (!file)
			continue;
		name_copy(ids[i], file, n, name, sizeof(name));
		if (snprintf(from, sizeof(from), "%.*s", (int)n, file) >= (int)sizeof(from) ||
		    snprintf(to, sizeof(to), "%s/%s", dir, name) >= (int)sizeof(to))
			return -ENAMETOOLONG;
		*strrchr(to, '/') = '\0';
		if (mkdir(to, 0777) < 0 && errno != EEXIST)
			return -errno;
		to[strlen(to)] = '/';
		r = keep(from, to);
	}
	return r;
}

char *kept_file_text(const struct config *c, enum option_id id, char *buf, size_t size)
{
	const char *text = config_text(c, id), *file;
	char name[NAME_MAX + 32];
	size_t n;

	file = kept_file(c, id, &n);
	if (!file) {
		snprintf(buf, size, "%s", text);
		return buf;
	}
	name_copy(id, file, n, name, sizeof(name));
	snprintf(buf, size, "%.*s%s%s", (int)(file - text), text, name, file + n);
	return buf;
}

char *kept_file_shown(const struct config *c, enum option_id id, char *buf, size_t size)
{
	const char *text = config_text(c, id), *file;
	char name[NAME_MAX + 32];
	size_t n, n_name;

	file = kept_file(c, id, &n);
	if (file) {
		name_copy(id, file, n, name, sizeof(name));
		n_name = strlen(name);
		if (n > n_name && file[n - n_name - 1] == '/' &&
		    memcmp(file + n - n_name, name, n_name) == 0) {
			snprintf(buf, size, "%.*s%s%s", (int)(file - text), text,
				 strchr(name, '/') + 1, file + n);
			return buf;
		}
	}
	snprintf(buf, size, "%s", text);
	return buf;
}
