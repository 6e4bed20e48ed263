/* See check-link.h. A link follows from an address. Without a token nothing but this host may reach
 * nboxd. */
#include "config/check-link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "config/convert.h"

static bool is_loopback(const char *host)
{
	struct in_addr a;

	/* 127.example.org is a name, and may be anywhere */
	return strcmp(host, "localhost") == 0 ||
	       (strncmp(host, "127.", 4) == 0 && inet_pton(AF_INET, host, &a) == 1) ||
	       strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0;
}

/* tcp and rdma. */
static int check_host(const struct config *c, size_t item, const char *addr, struct err *err)
{
	const char *rest = strchr(addr, ':') + 1, *colon = strrchr(rest, ':');
	char host[256];
	uint64_t port;

	if (!colon || colon == rest)
		return value_refuse(c, CONFIG_ADDR, item, err, "'%.128s' is no %.*s:host:port",
				    addr, (int)strcspn(addr, ":"), addr);
	if (units_count(colon + 1, &port, NULL) < 0 || port > 65535)
		return value_refuse(c, CONFIG_ADDR, item, err,
				    "'%.32s' is no port (0 to 65535; 0: any)", colon + 1);
	if ((size_t)(colon - rest) >= sizeof(host))
		return value_refuse(c, CONFIG_ADDR, item, err, "the host name is too long");
	snprintf(host, sizeof(host), "%.*s", (int)(colon - rest), rest);
	if (!is_loopback(host) && !config_text(c, CONFIG_TOKEN) &&
	    strncmp(addr, "rdma:auto:", 10) != 0)
		return value_refuse(c, CONFIG_ADDR, item, err,
				    "%s can be reached from other hosts, that needs a token: "
				    "set NBOX_TOKEN for nboxd and the workers%s",
				    addr, addr[0] == 't' ? ", or use tcp:127.0.0.1:port" : "");
	return 0;
}

static int check_shm(const struct config *c, size_t item, const char *addr, struct err *err)
{
	if (addr[3] != ':' || (addr[4] != '/' && (addr[4] != '@' || !addr[5])))
		return value_refuse(
			c, CONFIG_ADDR, item, err,
			"'%.128s': the path must begin with / (or be an abstract @name)", addr);
	if (strlen(addr + 4) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return value_refuse(c, CONFIG_ADDR, item, err,
				    "the path of a socket has at most %zu bytes, this one %zu",
				    sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
				    strlen(addr + 4));
	return 0;
}

static const char *const schemes[] = {"shm", "tcp", "rdma"}; /* as in link_names */

static int check_addr(const struct config *c, size_t item, int *ret_link, struct err *err)
{
	const char *addr = c->values[CONFIG_ADDR].items[item].text, *near;
	char scheme[16];
	size_t i;

	snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(addr, ":"), addr);
	for (i = 0; i < ARRAY_SIZE(schemes) && strcmp(scheme, schemes[i]) != 0; i++)
		;
	if (i == ARRAY_SIZE(schemes) || !strchr(addr, ':')) {
		near = suggest(scheme, schemes, ARRAY_SIZE(schemes));
		return value_refuse(
			c, CONFIG_ADDR, item, err,
			"'%.128s' is no address: shm:/path, tcp:host:port or rdma:host:port%s%s%s",
			addr, near ? "; did you mean '" : "", near ? near : "", near ? ":'?" : "");
	}
	*ret_link = (int)i;
	return i ? check_host(c, item, addr, err) : check_shm(c, item, addr, err);
}

static int default_addr(struct config *c, int link)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char **at = &c->default_addr;

	if (link)
		return (*at = strdup(link == 1 ? "tcp:127.0.0.1:0" : "rdma:auto:0")) ? 0 : -ENOMEM;
	if (dir && dir[0] == '/' && strlen(dir) < 64 && access(dir, W_OK) == 0)
		return asprintf(at, "shm:%s/nboxd.sock", dir) < 0 ? -ENOMEM : 0;
	return asprintf(at, "shm:/tmp/nboxd-%u.sock", (unsigned)getuid()) < 0 ? -ENOMEM : 0;
}

/* Takes the addresses that were given. Each names its link. Workers use the first address, or the
 * first one of the link that --link names. */
static int check_addrs(struct config *c, int link, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_ADDR];
	char where[VALUE_WHERE_MAX];
	int kind = 0, r;

	for (size_t i = 0; i < v->n_items; i++) {
		r = check_addr(c, i, &kind, err);
		if (r < 0)
			return r;
		c->addrs[i] = v->items[i].text;
		if (!c->addr && (!config_is_set(c, CONFIG_LINK) || kind == link))
			c->addr = c->addrs[i];
		if (c->addr == c->addrs[i]) { /* it comes first */
			c->addrs[i] = c->addrs[0];
			c->addrs[0] = c->addr;
		}
	}
	c->n_addrs = v->n_items;
	if (!c->addr)
		return value_refuse(c, CONFIG_ADDR, 0, err,
				    "%s contradicts link %s (%s); an address alone says "
				    "which link it is",
				    c->addrs[0], schemes[link],
				    config_where(c, CONFIG_LINK, 0, where, sizeof(where)));
	return 0;
}

/* Refuses the name of a network: the user takes this link for the virtual cluster's. */
static int check_network_name(const struct config *c, struct err *err)
{
	static const struct {
		const char *name, *link;
	} names[] = {
		{"roce", "rdma"},    {"ib", "rdma"},  {"infiniband", "rdma"}, {"verbs", "rdma"},
		{"ethernet", "tcp"}, {"eth", "tcp"},  {"socket", "tcp"},      {"sockets", "tcp"},
		{"nvlink", "shm"},   {"pcie", "shm"},
	};
	const char *text = config_text(c, CONFIG_LINK);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(text, names[i].name) == 0)
			return value_refuse(c, CONFIG_LINK, 0, err,
					    "unknown link '%.64s'; did you mean '%s'? This link is "
					    "between workers "
					    "and nboxd; the virtual cluster's network is set by "
					    "inter-bandwidth, "
					    "inter-latency and the model",
					    text, names[i].link);
	return 0;
}

static int check_link(struct config *c, struct err *err)
{
	const char *token = config_text(c, CONFIG_TOKEN);
	int link = 0, r = check_network_name(c, err);

	if (r == 0)
		r = value_choice(c, CONFIG_LINK, &link, err);
	if (r < 0)
		return r;
	free(c->addrs);
	free(c->default_addr);
	c->default_addr = NULL;
	c->addr = NULL;
	c->n_addrs = 0;
	c->addrs = calloc(c->values[CONFIG_ADDR].n_items + 1, sizeof(*c->addrs));
	memset(c->token, 0, sizeof(c->token));
	if (token) {
		if (strlen(token) > sizeof(c->token) || !token[0])
			return value_refuse(c, CONFIG_TOKEN, 0, err,
					    "a token has 1 to %d bytes, not %zu", WIRE_TOKEN_BYTES,
					    strlen(token));
		memcpy(c->token, token, strlen(token));
	}
	if (c->addrs && c->values[CONFIG_ADDR].n_items)
		return check_addrs(c, link, err);
	if (!c->addrs || default_addr(c, link) < 0)
		return err_set(err, ENOMEM, "out of memory");
	c->addr = c->addrs[0] = c->default_addr;
	c->n_addrs = 1;
	return 0;
}

static int check_payload_memory(struct config *c, struct err *err)
{
	if (c->payload_memory != MEMORY_DEVICE || strncmp(c->addr, "rdma:", 5) == 0)
		return 0;
	return value_refuse(c, CONFIG_PAYLOAD_MEMORY, 0, err,
			    "payload-memory device needs link rdma (workers use %s)", c->addr);
}

/* "HOST:PORT" or "none", which gives NULL. */
static int check_host_port(struct config *c, enum option_id id, const char **ret, struct err *err)
{
	const char *text = config_text(c, id), *colon = strrchr(text, ':');
	uint64_t port;

	*ret = NULL;
	if (strcmp(text, "none") == 0)
		return 0;
	if (!colon || colon == text || colon - text > 255)
		return value_refuse(c, id, 0, err,
				    "'%.128s' is no HOST:PORT, such as 127.0.0.1:0, nor none",
				    text);
	if (units_count(colon + 1, &port, NULL) < 0 || port > 65535)
		return value_refuse(c, id, 0, err, "'%.32s' is no port (0 to 65535; 0: any)",
				    colon + 1);
	*ret = text;
	return 0;
}

static int check_metrics(struct config *c, struct err *err)
{
	int r = check_host_port(c, CONFIG_METRICS, &c->metrics, err);
	char host[256];

	if (r != 0 || !c->metrics)
		return r;
	snprintf(host, sizeof(host), "%.*s", (int)(strrchr(c->metrics, ':') - c->metrics),
		 c->metrics);
	c->metrics_needs_token = !is_loopback(host);
	if (c->metrics_needs_token && !config_text(c, CONFIG_TOKEN))
		return value_refuse(c, CONFIG_METRICS, 0, err,
				    "%s can be reached from other hosts, that needs a token: set "
				    "NBOX_TOKEN, or use 127.0.0.1:PORT",
				    c->metrics);
	return 0;
}

int check_addresses(struct config *c, struct err *err)
{
	int r = check_link(c, err);

	r = r ? r : check_payload_memory(c, err);
	r = r ? r : check_host_port(c, CONFIG_STORE, &c->store, err);
	return r ? r : check_metrics(c, err);
}
