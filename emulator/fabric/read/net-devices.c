/* See net-devices.h. The file goes to NCCL as it is, which reads it in full: of it only <net ...>
 * elements are looked at here. */
#include "fabric/read/net-devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

#define TOPO_BYTES_MAX (16 << 20)

/* The value of attribute @key of the element at @s, which ends at @end; "" where it has none. */
static const char *attribute(const char *s, const char *end, const char *key, char *buf,
			     size_t size)
{
	char mark[32];
	const char *at, *last;
	size_t n;

	buf[0] = 0;
	snprintf(mark, sizeof(mark), " %s=\"", key);
	at = strstr(s, mark);
	if (!at || at >= end)
		return buf;
	at += strlen(mark);
	last = memchr(at, '"', (size_t)(end - at));
	n = last ? (size_t)(last - at) : 0;
	if (n >= size)
		n = size - 1;
	memcpy(buf, at, n);
	buf[n] = 0;
	return buf;
}

static int number(const char *text, int otherwise)
{
	char *end;
	long v = strtol(text, &end, 10);

	return end == text || v < 0 || v > 100000000 ? otherwise : (int)v;
}

int net_devices_parse(const char *name, const char *text, struct net_device ret[NET_DEVICES_MAX],
		      size_t *ret_n, struct err *err)
{
	struct net_device found[NET_DEVICES_MAX];
	char value[64];
	size_t n = 0;

	for (const char *s = strstr(text, "<net "), *end; s; s = strstr(end, "<net ")) {
		struct net_device d = {.port = 1};

		end = strchr(s, '>');
		if (!end)
			return err_set(err, EINVAL, "%s: its last <net> has no end", name);
		if (n == NET_DEVICES_MAX)
			return err_set(err, EINVAL, "%s: more than %d NICs", name, NET_DEVICES_MAX);
		attribute(s, end, "name", d.name, sizeof(d.name));
		d.guid = strtoull(attribute(s, end, "guid", value, sizeof(value)), NULL, 0);
		d.port = number(attribute(s, end, "port", value, sizeof(value)), 1);
		d.mbps = number(attribute(s, end, "speed", value, sizeof(value)), 0);
		d.latency_us = strtof(attribute(s, end, "latency", value, sizeof(value)), NULL);
		d.n_comms = number(attribute(s, end, "maxconn", value, sizeof(value)), 65536);
		d.has_gdr = number(attribute(s, end, "gdr", value, sizeof(value)), 0) != 0;
		if (!d.name[0] || strpbrk(d.name, " \n") || d.mbps < 1)
			return err_set(err, EINVAL,
				       "%s: a <net> of it has no name, or no speed in Mbit/s",
				       name);
		found[n++] = d;
	}
	if (!n)
		return err_set(err, EINVAL, "%s has no <net>: a node without a NIC has no network",
			       name);
	memcpy(ret, found, n * sizeof(*ret));
	*ret_n = n;
	return 0;
}

int net_devices_read(const char *path, struct net_device ret[NET_DEVICES_MAX], size_t *ret_n,
		     struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r;

	r = file_read(path, TOPO_BYTES_MAX, &text, &n, err);
	return r < 0 ? r : net_devices_parse(path, text, ret, ret_n, err);
}
