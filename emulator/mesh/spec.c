/* See spec.h. */
#include "mesh/spec.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define ELEMENTS_MAX \
	(UINT64_C(1) << 48) /* so that no sum of bytes overflows, padded or sent often */

static const struct {
	const char *name;
	int bytes;
} dtypes[] = {
	{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f8", 1},
	{"i64", 8}, {"i32", 4}, {"i16", 2}, {"i8", 1},   {"u8", 1},
};

/* Digits up to @most. Return: behind them; NULL: there are none, or too many. */
static const char *take_count(const char *text, uint64_t most, uint64_t *ret)
{
	uint64_t n = 0;
	const char *p;

	for (p = text; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > most)
			return NULL;
	}
	if (p == text || n == 0)
		return NULL;
	*ret = n;
	return p;
}

static int refuse(const char *text, const char *why, struct err *err)
{
	return err_set(err, EINVAL,
		       "'%.64s': %s; a layout is R, S0, S1 or S01 for each dimension of the "
		       "tensor, then the mesh, hosts x devices: S0RR@2x4",
		       text, why);
}

static int parse_mesh(const char *text, const char *p, struct mesh_spec *s, struct err *err)
{
	uint64_t hosts, devices;

	p = take_count(p, MESH_HOSTS, &hosts);
	if (!p || *p != 'x')
		return refuse(text, "which mesh? At most 64 hosts of 64 devices", err);
	p = take_count(p + 1, MESH_DEVICES, &devices);
	if (!p || *p)
		return refuse(text, "how many devices has a host? At most 64", err);
	s->hosts = (uint32_t)hosts;
	s->devices = (uint32_t)devices;
	return 0;
}

int mesh_spec_parse(const char *text, struct mesh_spec *ret, struct err *err)
{
	struct mesh_spec s = {0};
	uint8_t used = 0, cut;
	const char *p = text;

	while (*p == 'R' || *p == 'S') {
		cut = 0;
		if (*p++ == 'S') {
			if (*p == '0')
				cut = MESH_BY_HOST, p++;
			if (*p == '1')
				cut |= MESH_BY_DEVICE, p++;
			if (!cut || (cut == MESH_BY_DEVICE && *p == '0'))
				return refuse(text,
					      "S0 cuts along hosts, S1 along the devices of a "
					      "host, S01 along both",
					      err);
		}
		if (used & cut)
			return refuse(text, "one dimension of the mesh cuts only one of the tensor",
				      err);
		if (s.n_dims == MESH_DIMS)
			return refuse(text, "more than 8 dimensions", err);
		used |= cut;
		s.cut[s.n_dims++] = cut;
	}
	if (s.n_dims == 0 || *p != '@')
		return refuse(text, s.n_dims ? "'@' and the mesh are missing" : "it has no symbol",
			      err);
	if (parse_mesh(text, p + 1, &s, err) < 0)
		return -EINVAL;
	*ret = s;
	return 0;
}

int mesh_dims_parse(const char *text, struct mesh_tensor *ret, struct err *err)
{
	struct mesh_tensor t = {0};
	uint64_t room = ELEMENTS_MAX;
	const char *p = text;

	for (;;) {
		if (t.n_dims == MESH_DIMS)
			return err_set(err, EINVAL, "'%.64s' has more than 8 dimensions", text);
		p = take_count(p, room, &t.dims[t.n_dims]);
		if (!p || (*p && *p != 'x'))
			return err_set(err, EINVAL,
				       "'%.64s' is no tensor of at most 2^48 elements; its "
				       "dimensions are counts: 1024x1024x512",
				       text);
		room /= t.dims[t.n_dims++];
		if (!*p)
			break;
		p++;
	}
	*ret = t;
	return 0;
}

int mesh_dtype_bytes(const char *text, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		if (strcmp(text, dtypes[i].name) == 0)
			return dtypes[i].bytes;
	return err_set(err, EINVAL,
		       "'%.64s' is no type of elements; it is f64, f32, f16, bf16, f8, i64, i32, "
		       "i16, i8 or u8",
		       text);
}

uint64_t mesh_elements(const struct mesh_tensor *t)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < t->n_dims; i++)
		n *= t->dims[i];
	return n;
}

uint64_t mesh_bytes(const struct mesh_tensor *t)
{
	return mesh_elements(t) * t->element_bytes;
}

uint64_t mesh_box_elements(const struct mesh_box *b, uint32_t n_dims)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < n_dims; i++)
		n *= b->hi[i] - b->lo[i];
	return n;
}

static uint32_t parts(const struct mesh_spec *s, uint32_t dim)
{
	return (s->cut[dim] & MESH_BY_HOST ? s->hosts : 1) *
	       (s->cut[dim] & MESH_BY_DEVICE ? s->devices : 1);
}

uint32_t mesh_tiles(const struct mesh_spec *s)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < s->n_dims; i++)
		n *= parts(s, i);
	return n;
}

uint32_t mesh_tile_of(const struct mesh_spec *s, uint32_t device)
{
	uint32_t host = device / s->devices, place = device % s->devices, tile = 0;

	for (uint32_t i = 0; i < s->n_dims; i++) {
		uint32_t part = s->cut[i] & MESH_BY_HOST ? host : 0;

		if (s->cut[i] & MESH_BY_DEVICE)
			part = part * s->devices + place;
		tile = tile * parts(s, i) + part;
	}
	return tile;
}

void mesh_replicas(const struct mesh_spec *s, uint32_t tile, struct mesh_replicas *ret)
{
	*ret = (struct mesh_replicas){.hosts = s->hosts, .devices = s->devices};
	for (uint32_t i = s->n_dims; i-- > 0; tile /= parts(s, i)) {
		uint32_t part = tile % parts(s, i);

		if (s->cut[i] & MESH_BY_DEVICE) {
			ret->device = part % s->devices;
			ret->devices = 1;
			part /= s->devices;
		}
		if (s->cut[i] & MESH_BY_HOST) {
			ret->host = part;
			ret->hosts = 1;
		}
	}
}

static uint64_t up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void mesh_tile_box(const struct mesh_spec *s, const struct mesh_tensor *t, uint32_t tile,
		   struct mesh_box *ret)
{
	for (uint32_t i = s->n_dims; i-- > 0; tile /= parts(s, i)) {
		uint64_t part = tile % parts(s, i), length = up(t->dims[i], parts(s, i));

		ret->lo[i] = least(part * length, t->dims[i]);
		ret->hi[i] = least(ret->lo[i] + length, t->dims[i]);
	}
}

uint64_t mesh_pad_bytes(const struct mesh_spec *s, const struct mesh_tensor *t)
{
	struct mesh_tensor padded = *t;

	for (uint32_t i = 0; i < t->n_dims; i++)
		padded.dims[i] = up(t->dims[i], parts(s, i)) * parts(s, i);
	return mesh_bytes(&padded) - mesh_bytes(t);
}
