/* See open.h. */
#include "fabric/read/open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "fabric/read/yaml-read.h"

#define FILE_MAX_BYTES (1u << 20)

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int parse_yaml(const char *name, const char *text, size_t n, uint32_t n_nodes,
		      uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	struct yaml_doc d;
	int r = yaml_doc_open(&d, name, text, n, err);

	if (r < 0)
		return r;
	r = fabric_read_yaml(&d, n_nodes, gpus_per_node, ret);
	yaml_doc_close(&d);
	return r;
}

int fabric_parse(const char *name, const char *text, size_t n, uint32_t n_nodes,
		 uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	struct fabric *f = NULL;
	int r;

	if (n > FILE_MAX_BYTES)
		return err_set(err, EFBIG, "%s: a fabric has at most %u bytes", name,
			       FILE_MAX_BYTES);
	r = parse_yaml(name, text, n, n_nodes, gpus_per_node, &f, err);
	if (r < 0)
		return r;
	if (!f->name[0])
		snprintf(f->name, sizeof(f->name), "%s", last_part(name));
	if (asprintf(&f->source, "file %s", name) < 0) {
		f->source = NULL;
		fabric_free(f);
		return err_set(err, ENOMEM, "%s: out of memory", name);
	}
	*ret = f;
	return 0;
}

int fabric_open(const char *text, uint32_t n_nodes, uint32_t gpus_per_node, struct fabric **ret,
		struct err *err)
{
	CLEANUP(freep) char *content = NULL;
	bool is_file = strchr(text, '/') || strchr(text, '.') || access(text, F_OK) == 0;
	size_t n;
	int r = -ENOENT;

	if (!strchr(text, '/'))
		r = fabric_preset(text, n_nodes ? n_nodes : 1, gpus_per_node, ret, err);
	if (r != -ENOENT || !is_file)
		return r;
	r = file_read(text, FILE_MAX_BYTES, &content, &n, err);
	return r < 0 ? r : fabric_parse(text, content, n, n_nodes, gpus_per_node, ret, err);
}
