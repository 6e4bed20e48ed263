/* See fields.h. */
#include "fabric/read/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "base/units.h"
#include "fabric/fabric.h"

#define CHOICES(...)                         \
	(const char *const[])                \
	{                                    \
		__VA_ARGS__, NULL /* last */ \
	}
/* clang-format off */
#define CLASS(key, kind, member, choices) \
	{key, kind, offsetof(struct fabric_class, member), choices, sizeof(((struct fabric_class *)0)->member)}
#define NETWORK(key, kind, member, choices) \
	{key, kind, offsetof(struct fabric_network, member), choices, sizeof(((struct fabric_network *)0)->member)}
#define CABLE(key, kind, member) \
	{key, kind, offsetof(struct fabric_cable, member), NULL, sizeof(((struct fabric_cable *)0)->member)}

const struct field fields_class[] = {
	CLASS("name", FIELD_TEXT, name, NULL),
	CLASS("gpu", FIELD_TEXT, gpu, NULL),
	CLASS("sm", FIELD_COUNT, sm, NULL),
	CLASS("gpus", FIELD_COUNT, n_gpus, NULL),
	CLASS("domain_nodes", FIELD_COUNT, domain_nodes, NULL),
	CLASS("intra", FIELD_CHOICE, intra, CHOICES("nvswitch", "nvlink", "pcie")),
	CLASS("nvls", FIELD_CHOICE, has_nvls, CHOICES("no", "yes")),
	CLASS("gpu_bandwidth", FIELD_BANDWIDTH, gpu_bytes_per_ns, NULL),
	CLASS("gpu_latency", FIELD_TIME, gpu_latency_ns, NULL),
	CLASS("cpu", FIELD_CHOICE, cpu, CHOICES("intel", "amd", "arm", "other")),
	CLASS("nic", FIELD_CHOICE, nic, CHOICES("infiniband", "roce", "efa", "efa2", "slingshot", "socket", "tcpx")),
	CLASS("nics", FIELD_COUNT, n_nics, NULL),
	CLASS("nic_bandwidth", FIELD_BANDWIDTH, nic_bytes_per_ns, NULL),
	CLASS("distance", FIELD_CHOICE, distance, CHOICES("pix", "pxb", "phb", "sys")),
	CLASS("gdr", FIELD_CHOICE, has_gdr, CHOICES("no", "yes")),
	CLASS("pcie_bandwidth", FIELD_BANDWIDTH, pcie_bytes_per_ns, NULL),
	CLASS("gpu_efficiency", FIELD_RATIO, gpu_efficiency, NULL),
	CLASS("nic_efficiency", FIELD_RATIO, nic_efficiency, NULL),
	{0},
};
const struct field fields_network[] = {
	NETWORK("kind", FIELD_CHOICE, kind, CHOICES("switch", "rail", "leaf-spine", "fat-tree", "dragonfly", "cables")),
	NETWORK("latency", FIELD_TIME, latency_ns, NULL),
	NETWORK("hop_latency", FIELD_TIME, hop_latency_ns, NULL),
	NETWORK("nodes_per_leaf", FIELD_COUNT, nodes_per_leaf, NULL),
	NETWORK("leaves_per_pod", FIELD_COUNT, leaves_per_pod, NULL),
	NETWORK("oversubscription", FIELD_RATIO, oversubscription, NULL),
	NETWORK("ecmp", FIELD_COUNT, ecmp, NULL),
	{0},
};
#define FIT(key, kind, member) \
	{key, kind, offsetof(struct fabric_fit, member), NULL, sizeof(((struct fabric_fit *)0)->member)}
const struct field fields_fit[] = {
	FIT("points", FIELD_COUNT, n_points),
	FIT("error", FIELD_RATIO, error),
	FIT("min_ranks", FIELD_COUNT, min_ranks),
	FIT("max_ranks", FIELD_COUNT, max_ranks),
	FIT("min_bytes", FIELD_RATIO, min_bytes),
	FIT("max_bytes", FIELD_RATIO, max_bytes),
	{0},
};
#define RESIDUAL(key, kind, member, choices) \
	{key, kind, offsetof(struct fabric_residual, member), choices, sizeof(((struct fabric_residual *)0)->member)}
const struct field fields_residual[] = {
	RESIDUAL("op", FIELD_CHOICE, kind,
		 CHOICES("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv")),
	RESIDUAL("bytes", FIELD_RATIO, bytes, NULL),
	RESIDUAL("factor", FIELD_RATIO, factor, NULL),
	{0},
};
const struct field fields_cable[] = {
	CABLE("from", FIELD_COUNT, from),
	CABLE("to", FIELD_COUNT, to),
	CABLE("bandwidth", FIELD_BANDWIDTH, bytes_per_ns),
	CABLE("latency", FIELD_TIME, latency_ns),
	{0},
};
/* clang-format on */

const struct field *field_find(const struct field *fields, const char *key)
{
	for (; fields->key; fields++)
		if (strcmp(fields->key, key) == 0)
			return fields;
	return NULL;
}

static int set_choice(const struct field *field, void *at, const char *text, struct err *err)
{
	char all[128] = "";
	const char *near;
	uint32_t n = 0;

	for (; field->choices[n]; n++)
		if (strcasecmp(field->choices[n], text) == 0)
			break;
	if (field->choices[n]) {
		if (field->size == sizeof(bool))
			*(bool *)at = n;
		else
			memcpy(at, &n, sizeof(n)); /* an enum */
		return 0;
	}
	near = suggest_long(text, field->choices, n);
	if (near)
		return err_set(err, EINVAL, "%s: unknown '%.32s'; did you mean '%s'?", field->key,
			       text, near);
	for (uint32_t i = 0; i < n; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			 field->choices[i]);
	return err_set(err, EINVAL, "%s: unknown '%.32s'; there are: %s", field->key, text, all);
}

static int set_text(const struct field *field, void *at, const char *text, struct err *err)
{
	size_t n = strlen(text);

	if (!n || n >= field->size)
		return err_set(err, EINVAL, "%s: a text of 1 to %zu letters is expected",
			       field->key, field->size - 1);
	memcpy(at, text, n + 1);
	return 0;
}

static int set_count(const struct field *field, void *at, const char *text, struct err *err)
{
	uint64_t value;
	int r = units_count(text, &value, err);

	if (r < 0)
		return err_prefix(err, r, "%s", field->key);
	if (value > UINT32_MAX)
		return err_set(err, EINVAL, "%s: %.24s is too many", field->key, text);
	*(uint32_t *)at = (uint32_t)value;
	return 0;
}

int field_set(const struct field *field, void *object, const char *text, struct err *err)
{
	void *at = (char *)object + field->offset;
	int r = 0;

	switch (field->kind) {
	case FIELD_TEXT:
		return set_text(field, at, text, err);
	case FIELD_COUNT:
		return set_count(field, at, text, err);
	case FIELD_CHOICE:
		return set_choice(field, at, text, err);
	case FIELD_BANDWIDTH:
		r = units_bandwidth(text, at, err);
		break;
	case FIELD_TIME:
		r = units_time(text, at, err);
		break;
	case FIELD_RATIO:
	default:
		r = units_ratio(text, at, err);
		break;
	}
	return r < 0 ? err_prefix(err, r, "%s", field->key) : 0;
}

/* The shortest digits that are the same number again; no exponent. */
static void write_number(double value, const char *unit, FILE *to)
{
	char text[64];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (!strchr(text, 'e') && strtod(text, NULL) == value)
			break;
	}
	if (strchr(text, 'e'))
		snprintf(text, sizeof(text), "%.*f", value < 1 ? 18 : 0, value);
	fprintf(to, "%s%s", text, unit);
}

void field_write_bandwidth(double bytes_per_ns, FILE *to)
{
	if (bytes_per_ns < 1e-3)
		write_number(bytes_per_ns * 1e9, "B/s", to);
	else
		write_number(bytes_per_ns, "GB/s", to);
}

void field_write_time(double ns, FILE *to)
{
	write_number(ns, "ns", to);
}

void field_write_text(const char *text, FILE *to)
{
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

bool field_is_given(const struct field *field, const void *object)
{
	const char *at = (const char *)object + field->offset;

	if (field->kind == FIELD_TEXT)
		return at[0];
	return (field->kind != FIELD_BANDWIDTH && field->kind != FIELD_RATIO) ||
	       *(const double *)(const void *)at != 0;
}

void field_write(const struct field *field, const void *object, FILE *to)
{
	const void *at = (const char *)object + field->offset;
	uint32_t n = 0;

	fprintf(to, "%s: ", field->key);
	switch (field->kind) {
	case FIELD_TEXT:
		field_write_text(at, to);
		break;
	case FIELD_COUNT:
		fprintf(to, "%u", *(const uint32_t *)at);
		break;
	case FIELD_CHOICE:
		if (field->size == sizeof(bool))
			n = *(const bool *)at;
		else
			memcpy(&n, at, sizeof(n));
		fprintf(to, "%s", field->choices[n]);
		break;
	case FIELD_BANDWIDTH:
		field_write_bandwidth(*(const double *)at, to);
		break;
	case FIELD_TIME:
		field_write_time(*(const double *)at, to);
		break;
	case FIELD_RATIO:
	default:
		write_number(*(const double *)at, "", to);
		break;
	}
}
