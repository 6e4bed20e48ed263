/* See check-nccl.h. What is refused here would be wrong in each run; what only the job tells
 * (versions of NCCL, captured graphs) its processes refuse. */
#include "config/check-nccl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/convert.h"
#include "fabric/read/net-devices.h"

#define MBPS_OF_BYTES_PER_NS 8000.0
#define TEXT_MAX (NET_DEVICES_MAX * 96)

int check_exchange(struct config *c, struct err *err)
{
	int nccl = 0, exchange = 0, r = value_choice(c, CONFIG_NCCL, &nccl, err);
	bool is_full = nccl == NCCL_FULL;

	if (r == 0 && !config_is_set(c, CONFIG_EXCHANGE))
		r = config_set(c, CONFIG_EXCHANGE, SOURCE_DEFAULT,
			       is_full ? "payload" : options[CONFIG_EXCHANGE].default_text);
	if (r == 0)
		r = value_choice(c, CONFIG_EXCHANGE, &exchange, err);
	if (r < 0)
		return r;
	if (is_full && exchange == EXCHANGE_NONE && !c->is_of_run)
		return value_refuse(
			c, CONFIG_EXCHANGE, 0, err,
			"exchange none: with nccl full NCCL's own messages always cross the link, with "
			"their bytes (payload) or without (messages)");
	c->nccl = (uint32_t)nccl;
	c->exchange = is_full ? EXCHANGE_NONE : (uint32_t)exchange;
	c->traffic = is_full ? (uint32_t)exchange : EXCHANGE_NONE;
	return 0;
}

/* A node's GPUs are one to NCCL: it is real as a whole, or virtual. */
static int check_whole_nodes(const struct config *c, struct err *err)
{
	uint32_t gpus = c->topology.gpus_per_node;

	for (size_t i = 0, n; i < c->n_real; i += n) {
		uint32_t node = c->real[i] / gpus;

		for (n = 0; i + n < c->n_real && c->real[i + n] / gpus == node; n++)
			;
		if (n != gpus)
			return value_refuse(
				c, CONFIG_REAL, 0, err,
				"nccl full: %zu of the %u ranks of node %u are real; a node is real as a "
				"whole or not at all, since NCCL joins its GPUs without a network: name %u-%u, "
				"or let nodes have %zu (--gpus-per-node)",
				n, gpus, node, node * gpus, node * gpus + gpus - 1, n);
	}
	return 0;
}

/* A virtual rank's record in NCCL's bootstrap has no NVLink beyond its node (patches/README.md). */
static int check_domains(const struct config *c, struct err *err)
{
	enum option_id id = config_text(c, CONFIG_DOMAIN_NODES) ? CONFIG_DOMAIN_NODES
			    : config_text(c, CONFIG_PRESET)     ? CONFIG_PRESET
								: CONFIG_FABRIC;

	for (uint32_t i = 0; c->fabric && i < c->fabric->n_classes; i++)
		if (c->fabric->classes[i].domain_nodes > 1)
			return value_refuse(
				c, id, 0, err,
				"nccl full: NVLink joins %u nodes here, but NCCL's virtual ranks have it "
				"inside a node only, and NCCL would send by NICs what the cluster sends by "
				"NVLink: --domain-nodes 1, or nccl gate",
				c->fabric->classes[i].domain_nodes);
	return 0;
}

static int check_data(const struct config *c, struct err *err)
{
	static const char why[] =
		"nccl full: NCCL's own messages from virtual ranks carry no values "
		"of nbox's: take mirror, identity or none";

	if (c->data == DATA_FILL)
		return value_refuse(c, CONFIG_DATA, 0, err, "data fill with %s", why);
	for (size_t i = 0; i < c->n_data_for; i++)
		if (c->data_for[i].data == DATA_FILL)
			return value_refuse(c, CONFIG_DATA_FOR, i, err, "%s with %s",
					    c->values[CONFIG_DATA_FOR].items[i].text, why);
	return 0;
}

static bool is_what_if(const char *text, const char *name)
{
	size_t n = strlen(name);

	return strncmp(text, name, n) == 0 && (!text[n] || text[n] == ':');
}

/* These give an op the time of other messages than those that NCCL sends. */
static int check_what_ifs(const struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_WHAT_IF];

	for (size_t i = 0; i < v->n_items; i++)
		if (resharding_is_one(v->items[i].text) || is_what_if(v->items[i].text, "onesided"))
			return value_refuse(
				c, CONFIG_WHAT_IF, i, err,
				"'%.64s': its times are of other messages than those that "
				"NCCL sends with nccl full: take nccl gate",
				v->items[i].text);
	return 0;
}

/* --- the NICs that NCCL finds ---------------------------------------------------------------- */

/* One more behind those that @buf has room for. */
static void add_device(char *buf, size_t size, const char *name, double mbps)
{
	size_t used = strlen(buf);
	char one[96];

	snprintf(one, sizeof(one), "%s%.64s:%.0f", used ? "," : "", name, mbps);
	snprintf(buf + used, size - used, "%s", one);
}

/* Those of a real node in the fabric, or as many as a plain one has. */
static void devices_of_fabric(const struct config *c, char *buf, size_t size)
{
	uint32_t gpus = c->topology.gpus_per_node;
	const struct fabric_class *k =
		c->fabric ? fabric_class_of(c->fabric, c->real[0] / gpus) : NULL;
	uint32_t n = k ? k->n_nics : gpus < FABRIC_NICS_MAX ? gpus : FABRIC_NICS_MAX;
	double bytes_per_ns = k ? k->nic_bytes_per_ns : c->topology.inter.bytes_per_ns * gpus / n;

	for (uint32_t i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "nbox%u", i);
		add_device(buf, size, name, bytes_per_ns * MBPS_OF_BYTES_PER_NS);
	}
}

/* Those of the file that NCCL reads its node from. */
static int devices_of_file(const char *path, char *buf, size_t size, struct err *err)
{
	struct net_device d[NET_DEVICES_MAX];
	size_t n = 0;
	int r = net_devices_read(path, d, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (strpbrk(d[i].name, ":,"))
			r = err_set(err, EINVAL, "%s: a NIC '%s': nccl full takes no ':' or ','",
				    path, d[i].name);
		else
			add_device(buf, size, d[i].name, d[i].mbps);
	}
	return r < 0 ? err_prefix(err, -EINVAL, "NCCL_TOPO_FILE") : 0;
}

/* Those that the user names: NAME:MBPS[:PCIPATH][,...]. */
static int devices_of_user(const char *named, char *buf, size_t size, struct err *err)
{
	snprintf(buf, size, "%s", named);
	for (const char *at = named, *end; at; at = *end ? end + 1 : NULL) {
		size_t name = strcspn(at, ":,");
		size_t digits = at[name] == ':' ? strspn(at + name + 1, "0123456789") : 0;

		end = at + strcspn(at, ",");
		if (!name || !digits || digits > 9 || at[name + 1] == '0' ||
		    strchr(":,", at[name + 1 + digits]) == NULL)
			return err_set(
				err, EINVAL,
				"NBOX_NET_DEVICES: '%.*s' is no NAME:MBPS[:PCIPATH], such as "
				"mlx5_0:400000",
				(int)(end - at < 64 ? end - at : 64), at);
	}
	return strlen(named) < size ? 0
				    : err_set(err, EINVAL, "NBOX_NET_DEVICES: more than %d NICs",
					      NET_DEVICES_MAX);
}

static int find_devices(struct config *c, struct err *err)
{
	const char *path = getenv("NCCL_TOPO_FILE"), *named = getenv("NBOX_NET_DEVICES");
	char text[TEXT_MAX] = "";
	int r = 0;

	if (named && named[0])
		r = devices_of_user(named, text, sizeof(text), err);
	else if (path && path[0])
		r = devices_of_file(path, text, sizeof(text), err);
	else
		devices_of_fabric(c, text, sizeof(text));
	if (r < 0)
		return r;
	c->net_devices = strdup(text);
	return c->net_devices ? 0 : err_set(err, ENOMEM, "out of memory");
}

int check_full(struct config *c, struct err *err)
{
	int r;

	free(c->net_devices);
	c->net_devices = NULL;
	if (c->nccl != NCCL_FULL || c->is_of_run)
		return 0;
	if (config_text(c, CONFIG_WITH))
		return value_refuse(
			c, CONFIG_WITH, 0, err,
			"nccl full: ranks of another run have no process whose NCCL could "
			"send, and their nodes would be virtual: take nccl gate");
	r = check_whole_nodes(c, err);
	r = r < 0 ? r : check_domains(c, err);
	r = r < 0 ? r : check_data(c, err);
	r = r < 0 ? r : check_what_ifs(c, err);
	return r < 0 ? r : find_devices(c, err);
}
