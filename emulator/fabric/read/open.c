/* See open.h. */
#include "fabric/read/open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "fabric/read/astra.h"
#include "fabric/read/nccl-xml.h"
#include "fabric/read/yaml-read.h"

#define FILE_MAX_BYTES (1u << 20)
#define ASSUMED_LATENCY_NS 2000 /* as of InfiniBand */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Checks @f, which it owns, where its reader has not. */
static int checked(const char *name, struct fabric *f, uint32_t gpus_per_node, struct fabric **ret,
		   struct err *err)
{
	struct err why = {""};
	int r;

	if (!f)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	if (gpus_per_node)
		f->gpus_per_node = gpus_per_node;
	r = fabric_check(f, &why);
	if (r < 0) {
		fabric_free(f);
		return err_set(err, -r, "%s: %s", name, why.text);
	}
	*ret = f;
	return 0;
}

static int astra(struct yaml_doc *d, uint32_t n_nodes, uint32_t gpus_per_node, struct fabric **ret)
{
	struct fabric *f = NULL;
	int r = astra_read(d, n_nodes, &f);

	return r < 0 ? r : checked(d->name, f, gpus_per_node, ret, d->err);
}

static int parse_yaml(const char *name, const char *text, size_t n, uint32_t n_nodes,
		      uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	struct yaml_doc d;
	int r = yaml_doc_open(&d, name, text, n, err);

	if (r < 0)
		return r;
	if (yaml_doc_get(&d, yaml_doc_root(&d), "topology"))
		r = astra(&d, n_nodes, gpus_per_node, ret);
	else
		r = fabric_read_yaml(&d, n_nodes, gpus_per_node, ret);
	yaml_doc_close(&d);
	return r;
}

/* A node from its hardware; the network is one switch, until the user says more. */
static int parse_xml(const char *name, const char *text, size_t n, uint32_t n_nodes,
		     uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	static const struct fabric_network network = {.kind = FABRIC_SWITCH,
						      .latency_ns = ASSUMED_LATENCY_NS,
						      .oversubscription = 1};
	struct fabric_class class;
	struct err why = {""};
	struct machine m;
	int r = nccl_xml_read(name, text, n, &m, err);

	if (r == 0 && machine_class(&m, last_part(name), &class, &why) < 0)
		r = err_set(err, EINVAL, "%s: %s", name, why.text);
	if (r < 0)
		return r;
	return checked(name, fabric_new(&class, &network, n_nodes ? n_nodes : 1), gpus_per_node,
		       ret, err);
}

static bool begins_with_bracket(const char *text, size_t n)
{
	while (n > 0 && (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r'))
		text++, n--;
	return n > 0 && *text == '<';
}

int fabric_parse(const char *name, const char *text, size_t n, uint32_t n_nodes,
		 uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	bool is_xml = begins_with_bracket(text, n);
	struct fabric *f = NULL;
	int r;

	if (n > FILE_MAX_BYTES)
		return err_set(err, EFBIG, "%s: a fabric has at most %u bytes", name,
			       FILE_MAX_BYTES);
	r = is_xml ? parse_xml(name, text, n, n_nodes, gpus_per_node, &f, err)
		   : parse_yaml(name, text, n, n_nodes, gpus_per_node, &f, err);
	if (r < 0)
		return r;
	if (!f->name[0])
		snprintf(f->name, sizeof(f->name), "%s", last_part(name));
	if (asprintf(&f->source, "file %s%s", name,
		     is_xml ? "; the network is assumed: one switch, 2 us" : "") < 0) {
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
