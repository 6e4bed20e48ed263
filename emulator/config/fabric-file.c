/* See fabric-file.h. */
#include "config/fabric-file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "fabric/read/open.h"

const char *fabric_file(const struct config *c)
{
	const char *text = config_text(c, CONFIG_FABRIC);

	return text && fabric_is_file(text) ? text : NULL;
}

int fabric_file_beside(struct config *c, const char *path)
{
	struct config_value *v = &c->values[CONFIG_FABRIC];
	const char *slash = strrchr(path, '/');
	char *text;

	if (v->source != SOURCE_FILE || !slash || v->items[0].text[0] == '/')
		return 0;
	if (asprintf(&text, "%.*s/%s", (int)(slash - path), path, v->items[0].text) < 0)
		return -ENOMEM;
	if (!fabric_is_file(v->items[0].text) && access(text, F_OK) < 0) {
		free(text);
		return 0;
	}
	free(v->items[0].text);
	v->items[0].text = text;
	return 0;
}

int fabric_file_keep(const struct config *c, const char *dir)
{
	const char *from = fabric_file(c), *slash = from ? strrchr(from, '/') : NULL;
	CLEANUP(freep) char *text = NULL;
	char to[PATH_MAX];
	size_t n;
	FILE *f;
	int r;

	if (!from)
		return 0;
	r = file_read(from, FABRIC_FILE_MAX_BYTES, &text, &n, NULL);
	if (r < 0)
		return r;
	if (snprintf(to, sizeof(to), "%s/" FABRIC_FILE_FOLDER "/%s", dir,
		     slash ? slash + 1 : from) >= (int)sizeof(to))
		return -ENAMETOOLONG;
	*strrchr(to, '/') = '\0';
	if (mkdir(to, 0777) < 0 && errno != EEXIST)
		return -errno;
	to[strlen(to)] = '/';
	f = fopen(to, "we");
	if (!f)
		return -errno;
	fwrite(text, 1, n, f);
	return file_close(f);
}
