/* See text.h. A key that is not there counts as 0 or "": an nboxd of another version says
 * less. */
#include "nbox/status/text.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "base/units.h"
#include "nbox/json/json-file.h"

#define LINES_MAX 20 /* of a table; --json has all */

static long long number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_real(v) ? (long long)json_real_value(v) : (long long)json_integer_value(v);
}

static const char *clean(const char *s, char *buf, size_t size)
{
	snprintf(buf, size, "%s", s ? s : "");
	return plain_text(buf);
}

static const char *text(const json_t *o, const char *key, char *buf, size_t size)
{
	return clean(json_string_value(json_object_get(o, key)), buf, size);
}

/* NCCL's own messages. */
static void print_traffic(const json_t *t, FILE *to)
{
	fprintf(to,
		"NCCL's messages: %lld from real ranks, %lld to them, %lld of these without a real "
		"rank's data, %lld late; %lld receives wait, %lld flows are open\n",
		number(t, "arrived"), number(t, "sent"), number(t, "identity"), number(t, "late"),
		number(t, "waiting"), number(t, "flows"));
}

static void print_head(const json_t *o, FILE *to)
{
	char a[300], b[600], memory[32];

	fprintf(to, "nboxd %s, ", text(o, "nboxd", a, sizeof(a)));
	fprintf(to, "pid %lld, up %.1f s, %s, at %s\n", number(o, "pid"),
		json_number_value(json_object_get(o, "uptime_s")),
		units_print_bytes((uint64_t)number(o, "rss_bytes"), memory, sizeof(memory)),
		text(o, "addr", a, sizeof(a)));
	fprintf(to, "%lld ranks (%lld nodes x %lld), %lld real; ", number(o, "world_size"),
		number(o, "nodes"), number(o, "gpus_per_node"), number(o, "real_ranks"));
	if (strcmp(text(o, "nccl", a, sizeof(a)), "full") == 0)
		fprintf(to, "nccl full; ");
	fprintf(to, "exchange %s; ", text(o, "exchange", a, sizeof(a)));
	fprintf(to, "data %s; model %s; seed %lld\n", text(o, "data", a, sizeof(a)),
		text(o, "model", b, sizeof(b)), number(o, "seed"));
	if (json_object_get(o, "traffic"))
		print_traffic(json_object_get(o, "traffic"), to);
	if (text(o, "out", b, sizeof(b))[0])
		fprintf(to, "results in %s\n", b);
	fprintf(to, "%lld ops begun, %lld not over; %lld warning%s\n", number(o, "ops"),
		number(o, "open_ops"), number(o, "warnings"),
		number(o, "warnings") == 1 ? "" : "s");
}

static void print_more(size_t n, FILE *to)
{
	if (n > LINES_MAX)
		fprintf(to, "  and %zu more (--json lists them)\n", n - LINES_MAX);
}

static void print_workers(const json_t *list, FILE *to)
{
	char state[32], host[100], link[32];
	const json_t *w;
	size_t i;

	if (json_array_size(list) == 0) {
		fprintf(to, "\nno worker is connected\n");
		return;
	}
	fprintf(to, "\n  %-7s %-9s %-9s %-6s %13s  %s\n", "worker", "pid", "state", "link",
		"communicators", "host");
	json_array_foreach(list, i, w)
	{
		if (i >= LINES_MAX)
			break;
		fprintf(to, "  %-7lld %-9lld %-9s %-6s %13lld  %s\n", number(w, "worker"),
			number(w, "pid"), text(w, "state", state, sizeof(state)),
			text(w, "link", link, sizeof(link)), number(w, "members"),
			text(w, "host", host, sizeof(host)));
	}
	print_more(json_array_size(list), to);
}

static void print_comms(const json_t *list, FILE *to)
{
	const json_t *c;
	char how[300];
	size_t i;

	if (json_array_size(list) == 0)
		return;
	fprintf(to, "\n  %-12s %8s %6s %9s  %s\n", "communicator", "ranks", "real", "open ops",
		"members");
	json_array_foreach(list, i, c)
	{
		if (i >= LINES_MAX)
			break;
		fprintf(to, "  %-12lld %8lld %6zu %9lld  %s%s\n", number(c, "communicator"),
			number(c, "ranks"), json_array_size(json_object_get(c, "real")),
			number(c, "open_ops"), text(c, "members", how, sizeof(how)),
			json_is_true(json_object_get(c, "dead")) ? "; aborted" : "");
	}
	print_more(json_array_size(list), to);
}

static void print_waits(const json_t *list, FILE *to)
{
	char line[1100];
	const json_t *w;
	size_t i;

	fprintf(to, json_array_size(list) ? "\nwho waits for what:\n" : "\nnobody waits\n");
	json_array_foreach(list, i, w)
	{
		if (i >= LINES_MAX)
			break;
		fprintf(to, "  %s\n", clean(json_string_value(w), line, sizeof(line)));
	}
	print_more(json_array_size(list), to);
}

int status_print(const char *json, FILE *to, struct err *err)
{
	json_error_t why;
	CLEANUP(json_freep) json_t *o = json_loads(json, 0, &why);

	if (!json_is_object(o))
		return err_set(err, EPROTO,
			       "nboxd's answer is no JSON object (%s); --json prints it as it is",
			       o ? "another value" : why.text);
	print_head(o, to);
	print_workers(json_object_get(o, "workers"), to);
	print_comms(json_object_get(o, "communicators"), to);
	print_waits(json_object_get(o, "waits"), to);
	return 0;
}
