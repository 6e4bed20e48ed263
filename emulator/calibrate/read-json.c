/* JSON: what nccl-tests writes with -J, one object; and what NCCL Inspector writes, an object a
 * line. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "calibrate/reader.h"

/* --- nccl-tests ------------------------------------------------------------------ */

/* A number above 0 of @object. Return: 0; -EINVAL: @where, for sentences. */
static int number(struct reader *r, const json_t *object, const char *key, const char *where,
		  double *ret)
{
	const json_t *v = json_object_get(object, key);

	if (!json_is_number(v) || !(json_number_value(v) > 0 && json_number_value(v) <= 1e15))
		return reader_wrong(r, "%s has no %s above 0", where, key);
	*ret = json_number_value(v);
	return 0;
}

static int kind_of_program(const json_t *root)
{
	const char *path = json_string_value(json_array_get(json_object_get(root, "args"), 0));
	const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
	char word[32];
	size_t n = name ? strlen(name) : 0;

	if (n < 6 || n - 5 >= sizeof(word) || strcmp(name + n - 5, "_perf") != 0)
		return -1;
	memcpy(word, name, n - 5);
	word[n - 5] = '\0';
	return coll_kind_parse(word);
}

/* Ranks of the first group, and on how many hosts they are. */
static void count_devices(const json_t *root, struct sample *s)
{
	const json_t *devices = json_object_get(json_object_get(root, "config"), "devices");
	json_t *hosts = json_object(), *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		const char *host = json_string_value(json_object_get(device, "hostname"));

		if (json_integer_value(json_object_get(device, "group")) != 0)
			continue;
		s->n_ranks++;
		if (host && hosts)
			json_object_set_new(hosts, host, json_true());
	}
	s->n_nodes = (uint32_t)json_object_size(hosts);
	json_decref(hosts);
}

static int take_result(struct reader *r, int kind, struct sample s, const json_t *result, size_t i)
{
	const char *half = r->hints->in_place ? "in_place" : "out_of_place";
	const json_t *times = json_object_get(result, half), *wrong;
	char where[64];
	double us;

	snprintf(where, sizeof(where), "results[%zu]", i);
	if (json_integer_value(json_object_get(result, "size")) == 0 &&
	    json_is_integer(json_object_get(result, "size")))
		return 0; /* too small for the ranks; nothing was sent */
	if (number(r, result, "size", where, &s.bytes) < 0)
		return -EINVAL;
	snprintf(where, sizeof(where), "results[%zu].%s", i, half);
	if (json_object_get(times, "cpu_time"))
		return reader_wrong(r, "%s: the times are the CPU's (-C), not the ops'", where);
	if (number(r, times, "time", where, &us) < 0)
		return -EINVAL;
	wrong = json_object_get(times, "nwrong");
	if (json_is_number(wrong) && json_number_value(wrong) != 0)
		return reader_wrong(r, "%s: %g results were wrong: no time to trust", where,
				    json_number_value(wrong));
	s.ns = us * 1e3;
	return reader_add(r, kind, s);
}

static int take_document(struct reader *r, const json_t *root)
{
	const json_t *results = json_object_get(root, "results");
	struct sample s = {.proto = CURVE_ANY_PROTO};
	json_t *result;
	size_t i;
	int kind = kind_of_program(root), bad = 0;

	if (!json_is_array(results))
		return reader_wrong(r, "neither nccl-tests' JSON (no results) nor NCCL Inspector's "
				       "(no coll_perf)");
	count_devices(root, &s);
	json_array_foreach(results, i, result) if (bad == 0) bad =
		take_result(r, kind, s, result, i);
	return bad;
}

/* --- NCCL Inspector ---------------------------------------------------------------- */

static uint32_t proto_of(const json_t *perf)
{
	static const char *const protos[] = {"LL", "LL128", "Simple"};
	const char *word = json_string_value(json_object_get(perf, "coll_proto"));

	for (uint32_t i = 0; word && i < 3; i++)
		if (strcasecmp(word, protos[i]) == 0)
			return i;
	return CURVE_ANY_PROTO;
}

/* A record of an op, whose size is that of the call; those of other sorts (p2p_perf) are passed
 * over. */
static int take_record(struct reader *r, const json_t *record)
{
	const json_t *perf = json_object_get(record, "coll_perf"),
		     *header = json_object_get(record, "header");
	const char *name = json_string_value(json_object_get(perf, "coll"));
	double ranks, nodes, bytes, us;
	struct sample s;
	int kind = name ? coll_kind_parse(name) : -1;

	if (!perf)
		return 0;
	if (kind < 0)
		return reader_wrong(r, "nbox knows no collective '%.40s'", name ? name : "");
	if (number(r, header, "n_ranks", "header", &ranks) < 0 ||
	    number(r, header, "nnodes", "header", &nodes) < 0 ||
	    number(r, perf, "coll_msg_size_bytes", "coll_perf", &bytes) < 0 ||
	    number(r, perf, "coll_exec_time_us", "coll_perf", &us) < 0)
		return -EINVAL;
	if (ranks > 1e9 || nodes > 1e9 || ranks != floor(ranks) || nodes != floor(nodes))
		return reader_wrong(r, "%g ranks on %g nodes", ranks, nodes);
	s = (struct sample){.n_ranks = (uint32_t)ranks,
			    .n_nodes = (uint32_t)nodes,
			    .proto = proto_of(perf),
			    .ns = us * 1e3};
	s.bytes = sample_size((uint32_t)kind, bytes, s.n_ranks);
	return s.n_ranks == 1 ? 0 : reader_add(r, kind, s);
}

/* --- both ---------------------------------------------------------------------------- */

static int syntax(struct reader *r, unsigned long line, const json_error_t *why)
{
	r->line = line + (unsigned long)(why->line > 0 ? why->line : 1);
	return reader_wrong(r, "no JSON: %.100s", why->text);
}

/* An object after the other: Inspector's records, or the one of nccl-tests. */
int read_json(struct reader *r)
{
	bool has_records = false;
	int bad = 0;

	while (bad == 0) {
		const char *p = r->p;
		json_error_t why;
		json_t *root;

		for (; p < r->end && strchr(" \t\r\n", *p); p++)
			r->line += *p == '\n';
		if (p == r->end)
			break;
		root = json_loadb(p, (size_t)(r->end - p), JSON_DISABLE_EOF_CHECK, &why);
		if (!root)
			return syntax(r, r->line, &why);
		r->line++; /* where it begins */
		if (has_records || json_object_get(root, "coll_perf") ||
		    json_object_get(root, "header")) {
			has_records = true;
			bad = take_record(r, root);
		} else {
			bad = take_document(r, root);
		}
		json_decref(root);
		r->line--;
		r->p = p + why.position;
		for (; p < r->p; p++)
			r->line += *p == '\n';
	}
	return bad;
}
