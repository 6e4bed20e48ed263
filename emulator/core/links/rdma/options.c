/* See options.h. One table: name, kind, bounds, place. */
#include "links/rdma/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "links/rdma/hello.h"

#define PREFIX "NBOX_IB_"

extern char **environ;

enum kind { NAME, COUNT, POWER, BYTES32, BYTES64, POLL };

static const struct rdma_option {
	const char *name; /* without PREFIX */
	enum kind kind;
	size_t at;
	uint64_t min, max;
	const char *default_text;
} options[] = {
#define AT(field) offsetof(struct rdma_options, field)
#define RDMA_OPTION(id, name, variable, key, kind, field, min, max, default_text, arg, help) \
	{&variable[sizeof(PREFIX) - 1], kind, AT(field), min, max, default_text},
#include "base/options.def"
};

static int set_number(struct rdma_options *o, const struct rdma_option *p, const char *text,
		      struct err *err)
{
	bool is_bytes = p->kind == BYTES32 || p->kind == BYTES64;
	uint64_t value;
	uint32_t value32;
	int r = is_bytes ? units_bytes(text, &value, err) : units_count(text, &value, err);

	if (r)
		return err_prefix(err, r, PREFIX "%s", p->name);
	if (value < p->min || value > p->max)
		return err_set(err, EINVAL, PREFIX "%s=%s: must be %llu to %llu", p->name, text,
			       (unsigned long long)p->min, (unsigned long long)p->max);
	if ((p->kind == POWER || p->at == AT(ring_bytes)) && (value & (value - 1)))
		return err_set(err, EINVAL, PREFIX "%s=%s: must be a power of two", p->name, text);
	value32 = (uint32_t)value;
	if (p->kind == BYTES64)
		memcpy((char *)o + p->at, &value, sizeof(value));
	else
		memcpy((char *)o + p->at, &value32, sizeof(value32));
	return 0;
}

static int set_one(struct rdma_options *o, const struct rdma_option *p, const char *text,
		   struct err *err)
{
	if (p->kind == NAME) {
		if (!text[0] || strlen(text) >= sizeof(o->hca))
			return err_set(err, EINVAL, PREFIX "HCA='%.80s': no name of a device",
				       text);
		strcpy(o->hca, text);
		return 0;
	}
	if (p->kind == POLL) {
		if (strcmp(text, "busy") && strcmp(text, "events"))
			return err_set(err, EINVAL, PREFIX "POLL=%.40s: one of events, busy", text);
		o->is_busy_polling = strcmp(text, "busy") == 0;
		return 0;
	}
	return set_number(o, p, text, err);
}

/* The ack timeout's default, 1.07 s, is what NCCL's was up to 2.22 (20 since). What answers may be
 * software (soft-RoCE, under load, is silent for longer than the 67 ms of 14), and what is sent
 * again there may break it. */
void rdma_options_init(struct rdma_options *o)
{
	*o = (struct rdma_options){.gid_index = -1, .traffic_class = -1};
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].default_text)
			set_one(o, &options[i], options[i].default_text, NULL);
}

int rdma_options_set(struct rdma_options *o, const char *name, const char *text, struct err *err)
{
	const char *names[ARRAY_SIZE(options)], *near;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		names[i] = options[i].name;
		if (strcmp(name, options[i].name) == 0)
			return set_one(o, &options[i], text, err);
	}
	near = suggest(name, names, ARRAY_SIZE(options));
	return err_set(err, ENOENT, "unknown variable " PREFIX "%.40s%s%s%s", name,
		       near ? "; did you mean " PREFIX : "", near ? near : "", near ? "?" : "");
}

/* The variables of this process. An unknown one is an error with a suggestion. */
static int from_environment(struct rdma_options *o, struct err *err)
{
	char name[64];
	int r = 0;

	for (char **e = environ; e && *e && !r; e++) {
		const char *rest = *e + strlen(PREFIX), *value;

		if (strncmp(*e, PREFIX, strlen(PREFIX)) != 0)
			continue;
		value = strchr(rest, '=');
		if (!value || !value[1])
			continue; /* set to nothing is not set */
		snprintf(name, sizeof(name), "%.*s", (int)(value - rest), rest);
		r = rdma_options_set(o, name, value + 1, err);
	}
	return r == -ENOENT ? -EINVAL : r;
}

static struct rdma_options used;
static bool is_used;

void rdma_options_use(const struct rdma_options *o)
{
	used = *o;
	is_used = true;
}

int rdma_options_get(struct rdma_options *ret, struct err *err)
{
	struct rdma_options o;
	int r = 0;

	rdma_options_init(&o);
	if (is_used)
		o = used;
	else
		r = from_environment(&o, err);
	if (!r)
		*ret = o;
	return r;
}
