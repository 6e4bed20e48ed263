/* See open.h. */
#include "fabric/read/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "fabric/read/astra.h"
#include "fabric/read/nccl-xml.h"
#include "fabric/read/sysfs.h"
#include "fabric/read/yaml-read.h"

#define ASSUMED_LATENCY_NS 2000 /* as of InfiniBand */

/* The last part of a path, cut between letters of UTF-8. */
static void short_name(const char *path, char ret[FABRIC_NAME_MAX])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strnlen(name, FABRIC_NAME_MAX);

	for (n -= n == FABRIC_NAME_MAX; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80;)
		n--;
	memcpy(ret, name, n);
	ret[n] = '\0';
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
static int node_of(const struct machine *m, const char *name, uint32_t n_nodes,
		   uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	static const struct fabric_network network = {.kind = FABRIC_SWITCH,
						      .latency_ns = ASSUMED_LATENCY_NS,
						      .oversubscription = 1};
	char short_text[FABRIC_NAME_MAX];
	struct fabric_class class;
	struct err why = {""};
	int r;

	short_name(name, short_text);
	if (machine_class(m, short_text, &class, &why) < 0)
		return err_set(err, EINVAL, "%s: %s", name, why.text);
	r = checked(name, fabric_new(&class, &network, n_nodes ? n_nodes : class.domain_nodes),
		    gpus_per_node, ret, err);
	if (r == 0)
		(*ret)->has_size = class.domain_nodes > 1;
	return r;
}

static int parse_xml(const char *name, const char *text, size_t n, uint32_t n_nodes,
		     uint32_t gpus_per_node, struct fabric **ret, struct err *err)
{
	struct machine m;
	int r = nccl_xml_read(name, text, n, &m, err);

	return r < 0 ? r : node_of(&m, name, n_nodes, gpus_per_node, ret, err);
}

int fabric_open_machine(const char *root, uint32_t n_nodes, uint32_t gpus_per_node,
			struct fabric **ret, struct err *err)
{
	struct nvml *nvml = root[0] ? NULL : nvml_open();
	struct fabric *f = NULL;
	struct machine m;
	int r = sysfs_read(root, nvml, &m, err);

	nvml_close(nvml);
	if (r == 0)
		r = node_of(&m, "this machine", n_nodes, gpus_per_node, &f, err);
	if (r < 0)
		return r;
	snprintf(f->name, sizeof(f->name), "machine");
	f->source =
		strdup("this machine's GPUs and NICs, by /sys; the network is assumed: one switch");
	if (!f->source) {
		fabric_free(f);
		return err_set(err, ENOMEM, "out of memory for the fabric");
	}
	*ret = f;
	return 0;
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

	if (n > FABRIC_FILE_MAX_BYTES)
		return err_set(err, EFBIG, "%s: a fabric has at most %u bytes", name,
			       FABRIC_FILE_MAX_BYTES);
	r = is_xml ? parse_xml(name, text, n, n_nodes, gpus_per_node, &f, err)
		   : parse_yaml(name, text, n, n_nodes, gpus_per_node, &f, err);
	if (r < 0)
		return r;
	if (!f->name[0])
		short_name(name, f->name);
	if (asprintf(&f->source, "file %s%s", name,
		     is_xml ? "; the network is assumed: one switch" : "") < 0) {
		f->source = NULL;
		fabric_free(f);
		return err_set(err, ENOMEM, "%s: out of memory", name);
	}
	*ret = f;
	return 0;
}

bool fabric_is_file(const char *text)
{
	const char *name, *summary;

	for (size_t i = 0; (name = fabric_preset_name(i, &summary)); i++)
		if (strcasecmp(name, text) == 0)
			return false;
	return strcasecmp(text, "machine") != 0 && (strpbrk(text, "/.") || access(text, F_OK) == 0);
}

int fabric_open(const char *text, uint32_t n_nodes, uint32_t gpus_per_node, struct fabric **ret,
		struct err *err)
{
	CLEANUP(freep) char *content = NULL;
	size_t n;
	int r;

	if (strcasecmp(text, "machine") == 0)
		return fabric_open_machine("", n_nodes, gpus_per_node, ret, err);
	if (!fabric_is_file(text))
		return fabric_preset(text, n_nodes ? n_nodes : 1, gpus_per_node, ret, err);
	r = file_read(text, FABRIC_FILE_MAX_BYTES, &content, &n, err);
	return r < 0 ? r : fabric_parse(text, content, n, n_nodes, gpus_per_node, ret, err);
}
