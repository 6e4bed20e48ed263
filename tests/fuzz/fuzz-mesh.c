/* Layouts on meshes and tensors, on any text: tiles of what is accepted lie in the tensor, and a
 * resharding of it moves every byte that a destination tile has. */
#include "fuzz.h"

#include "mesh/mesh.h"

#define TILES 64 /* of a side, where tasks are made */

static uint64_t check_tiles(const struct mesh_spec *s, const struct mesh_tensor *t)
{
	uint64_t elements = 0;

	for (uint32_t i = 0; i < mesh_tiles(s); i++) {
		struct mesh_box b;

		mesh_tile_box(s, t, i, &b);
		for (uint32_t d = 0; d < t->n_dims; d++)
			REQUIRE(b.lo[d] <= b.hi[d] && b.hi[d] <= t->dims[d]);
		elements += mesh_box_elements(&b, t->n_dims);
	}
	for (uint32_t d = 0; d < s->hosts * s->devices; d++) {
		struct mesh_replicas r;

		mesh_replicas(s, mesh_tile_of(s, d), &r);
		REQUIRE(r.host <= d / s->devices && d / s->devices < r.host + r.hosts);
		REQUIRE(r.device <= d % s->devices && d % s->devices < r.device + r.devices);
	}
	mesh_pad_bytes(s, t);
	return elements;
}

/* "TENSOR SOURCE DESTINATION" */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *words[3];
	struct mesh_tensor t;
	struct mesh_spec src, dst;
	struct mesh_reshard r;
	struct err err = {""};

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (int i = 0; i < 3; i++)
		words[i] = rest ? strsep(&rest, " ") : (char *)"";
	if (mesh_dims_parse(words[0], &t, &err) || mesh_spec_parse(words[1], &src, &err) ||
	    mesh_spec_parse(words[2], &dst, &err)) {
		REQUIRE(err.text[0]);
		free(text);
		return 0;
	}
	free(text);
	t.element_bytes = 8;
	if (src.n_dims != t.n_dims || dst.n_dims != t.n_dims || mesh_tiles(&src) > TILES ||
	    mesh_tiles(&dst) > TILES)
		return 0;
	REQUIRE(check_tiles(&src, &t) == mesh_elements(&t));
	REQUIRE(check_tiles(&dst, &t) == mesh_elements(&t));
	if (mesh_reshard_init(&r, &t, &src, &dst, &err) == 0) {
		uint64_t bytes = 0;

		for (uint32_t i = 0; i < r.n; i++)
			bytes += r.tasks[i].bytes;
		REQUIRE(bytes == mesh_bytes(&t));
		mesh_reshard_deinit(&r);
	}
	return 0;
}
