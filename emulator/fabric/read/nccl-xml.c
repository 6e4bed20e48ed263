/* See nccl-xml.h. Of the elements these matter: cpu (host_hash, arch, vendor), pci (busid, class,
 * vendor, device, link_speed, link_width), gpu (dev, sm, gdr) with nvlink (target, count, tclass),
 * net (name, net, speed in Mbit/s, port, gdr). The tree that they stand in is the PCI tree. Of
 * several hosts whose GPUs one NVSwitch joins the first is read, the others are counted. */
#include "fabric/read/nccl-xml.h"

#include <errno.h>
#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOSTS_MAX 256
#define UNKNOWN_MBITS 10000

struct element {
	uint32_t number; /* 0: it is no place: gpu, nic, net */
	double pcie_bytes_per_ns;
	uint32_t bus;
	unsigned long class, vendor, device; /* 0: not said */
};

struct reader {
	XML_Parser parser;
	const char *name;
	struct machine *m;
	struct err *err;
	struct element stack[MACHINE_DEPTH_MAX];
	uint32_t depth, n_places;
	struct machine_gpu *gpu; /* the one that is open; NULL */
	unsigned long long hosts[HOSTS_MAX];
	bool is_elsewhere; /* on another host than the first */
	int r;
};

static void refuse(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void refuse(struct reader *r, const char *fmt, ...)
{
	char sentence[ERR_TEXT_MAX];
	va_list ap;

	if (r->r < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	r->r = err_set(r->err, EINVAL, "%s:%lu:%lu: %s", r->name,
		       XML_GetCurrentLineNumber(r->parser),
		       XML_GetCurrentColumnNumber(r->parser) + 1, sentence);
	XML_StopParser(r->parser, XML_FALSE);
}

static const char *attribute(const char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return NULL;
}

/* A number from the start of a text: NCCL writes "32.0 GT/s PCIe". */
static double number(struct reader *r, const char **attributes, const char *name, double most)
{
	const char *text = attribute(attributes, name);
	char *end;
	double value;

	if (!text || !text[0])
		return 0;
	value = strtod(text, &end);
	if (end == text || !(value >= 0 && value <= most)) {
		refuse(r, "%s=\"%.32s\" is no number of 0 to %g", name, text, most);
		return 0;
	}
	return value;
}

static bool is_yes(const char **attributes, const char *name)
{
	const char *text = attribute(attributes, name);

	return text && strcmp(text, "1") == 0;
}

/* "0x020700"; 0 where it is not said. */
static unsigned long hex(const char **attributes, const char *name)
{
	const char *text = attribute(attributes, name);

	return text ? strtoul(text, NULL, 16) : 0;
}

static void take_host(struct reader *r, const char **attributes)
{
	const char *text = attribute(attributes, "host_hash");
	unsigned long long hash = text ? strtoull(text, NULL, 16) : 0;
	uint32_t i = 0;

	while (i < r->m->n_hosts && r->hosts[i] != hash)
		i++;
	r->is_elsewhere = i > 0;
	if (i < r->m->n_hosts)
		return;
	if (i == HOSTS_MAX) {
		refuse(r, "more than %d hosts", HOSTS_MAX);
		return;
	}
	r->hosts[r->m->n_hosts++] = hash;
}

static void take_cpu(struct reader *r, const char **attributes)
{
	const char *arch = attribute(attributes, "arch"), *vendor = attribute(attributes, "vendor");

	take_host(r, attributes);
	r->m->cpu = arch && strcmp(arch, "arm64") == 0              ? FABRIC_ARM
		    : vendor && strcmp(vendor, "GenuineIntel") == 0 ? FABRIC_INTEL
		    : vendor && strcmp(vendor, "AuthenticAMD") == 0 ? FABRIC_AMD
								    : FABRIC_OTHER_CPU;
}

static void take_pci(struct reader *r, const char **attributes, struct element *e)
{
	const char *bus = attribute(attributes, "busid");

	e->pcie_bytes_per_ns = machine_pcie_rate(number(r, attributes, "link_speed", 1000),
						 (uint32_t)number(r, attributes, "link_width", 32));
	e->bus = bus ? machine_bus(bus) : 0;
	e->class = hex(attributes, "class");
	e->vendor = hex(attributes, "vendor");
	e->device = hex(attributes, "device");
}

/* Where the element on top of the stack hangs. */
static void place(const struct reader *r, struct machine_place *ret)
{
	ret->depth = 0;
	for (uint32_t i = 0; i < r->depth; i++)
		if (r->stack[i].number)
			ret->path[ret->depth++] = r->stack[i].number;
}

static void take_gpu(struct reader *r, const char **attributes)
{
	struct machine_gpu *g = &r->m->gpus[r->m->n_gpus];

	if (r->m->n_gpus == MACHINE_DEVICES_MAX) {
		refuse(r, "more than %d GPUs", MACHINE_DEVICES_MAX);
		return;
	}
	*g = (struct machine_gpu){.number = (uint32_t)number(r, attributes, "dev", 1e6),
				  .sm = (uint32_t)number(r, attributes, "sm", 1000),
				  .has_gdr = is_yes(attributes, "gdr")};
	place(r, &g->place);
	if (r->depth >= 2) {
		g->bus = r->stack[r->depth - 2].bus;
		g->pcie_bytes_per_ns = r->stack[r->depth - 2].pcie_bytes_per_ns;
	}
	r->gpu = g;
	r->m->n_gpus++;
}

static void take_nvlink(struct reader *r, const char **attributes)
{
	const char *target = attribute(attributes, "target");
	struct machine_gpu *g = r->gpu;

	if (!g) {
		refuse(r, "nvlink stands under no gpu");
		return;
	}
	g->nvlink_bytes_per_ns += number(r, attributes, "count", 1000) * machine_nvlink_rate(g->sm);
	if (hex(attributes, "tclass") >> 8 == 0x0680)
		g->has_switch = true;
	else if (target && machine_bus(target) && g->n_far_ends < MACHINE_LINKS_MAX)
		g->far_ends[g->n_far_ends++] = machine_bus(target);
}

/* @pci: what it is on; NULL. NCCL's sockets have no port, its RDMA NICs have. */
static enum fabric_nic kind_of(const char *name, const struct element *pci, bool has_port)
{
	enum fabric_nic efa;

	if (strstr(name, "cxi"))
		return FABRIC_SLINGSHOT;
	if (pci && machine_is_efa(pci->vendor, pci->device, &efa))
		return efa;
	if (strncmp(name, "efa", 3) == 0 || strncmp(name, "rdmap", 5) == 0)
		return FABRIC_EFA2;
	if (pci && pci->class >> 8 == 0x0207)
		return FABRIC_INFINIBAND;
	return has_port || strncmp(name, "mlx", 3) == 0 ? FABRIC_ROCE : FABRIC_SOCKET;
}

static void take_net(struct reader *r, const char **attributes)
{
	const char *name = attribute(attributes, "name"), *net = attribute(attributes, "net");
	const char *speed = attribute(attributes, "speed");
	struct machine_nic *nic = &r->m->nics[r->m->n_nics];
	const struct element *pci = NULL;
	double mbits = 0;

	if (net && strcmp(net, "0") == 0)
		return; /* NCCL uses it otherwise */
	if (r->m->n_nics == MACHINE_DEVICES_MAX) {
		refuse(r, "more than %d NICs", MACHINE_DEVICES_MAX);
		return;
	}
	for (uint32_t i = 0; i < r->depth; i++)
		pci = r->stack[i].class ? &r->stack[i] : pci;
	if (speed && strcmp(speed, "-1") != 0)
		mbits = number(r, attributes, "speed", 1e8);
	*nic = (struct machine_nic){.kind = kind_of(name ? name : "", pci,
						    number(r, attributes, "port", 1e6) > 0),
				    /* so NCCL takes what does not know its speed */
				    .bytes_per_ns = (mbits > 0 ? mbits : UNKNOWN_MBITS) / 8e3,
				    .has_gdr = is_yes(attributes, "gdr")};
	place(r, &nic->place);
	r->m->n_nics++;
}

static void on_start(void *data, const char *name, const char **attributes)
{
	struct reader *r = data;
	struct element *e = &r->stack[r->depth];

	if (r->depth == MACHINE_DEPTH_MAX) {
		refuse(r, "elements inside each other deeper than %d", MACHINE_DEPTH_MAX);
		return;
	}
	if (r->depth == 0 && strcmp(name, "system") != 0) {
		refuse(r, "<%.32s>: a topology file of NCCL begins with <system>", name);
		return;
	}
	*e = (struct element){0};
	r->depth++;
	if (strcmp(name, "cpu") == 0 || strcmp(name, "pci") == 0)
		e->number = ++r->n_places;
	if (strcmp(name, "cpu") == 0)
		take_cpu(r, attributes);
	else if (r->is_elsewhere)
		return;
	else if (strcmp(name, "pci") == 0)
		take_pci(r, attributes, e);
	else if (strcmp(name, "gpu") == 0)
		take_gpu(r, attributes);
	else if (strcmp(name, "nvlink") == 0)
		take_nvlink(r, attributes);
	else if (strcmp(name, "net") == 0)
		take_net(r, attributes);
}

static void on_end(void *data, const char *name)
{
	struct reader *r = data;

	r->depth--;
	if (strcmp(name, "gpu") == 0)
		r->gpu = NULL;
}

static void on_doctype(void *data, const char *name, const char *system, const char *public,
		       int has_internal)
{
	(void)name, (void)system, (void)public, (void)has_internal;
	refuse(data, "document types and entities are not taken here");
}

int nccl_xml_read(const char *name, const char *text, size_t n, struct machine *ret,
		  struct err *err)
{
	struct reader r = {.parser = XML_ParserCreate("UTF-8"), .name = name, .m = ret, .err = err};

	if (!r.parser)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	*ret = (struct machine){.cpu = FABRIC_OTHER_CPU, .bridges_of_a_switch = 1};
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	if (XML_Parse(r.parser, text, (int)n, 1) == XML_STATUS_ERROR && r.r == 0) {
		enum XML_Error code = XML_GetErrorCode(r.parser);

		if (code == XML_ERROR_NO_MEMORY)
			r.r = err_set(err, ENOMEM, "%s: out of memory", name);
		else
			refuse(&r, "no XML: %s", XML_ErrorString(code));
	}
	XML_ParserFree(r.parser);
	return r.r;
}
