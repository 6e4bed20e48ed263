/* The parser of declared layouts on any text: a layout that it accepts divides the world, and its
 * groups hold the ranks that they are asked for. */
#include "fuzz.h"

#include "members/layout.h"

/* The first byte: how many ranks the world has. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t world = size ? data[0] + 1u : 1;
	char *text = malloc(size + 1), name[256];
	struct err err = {""};
	struct layout l;

	REQUIRE(text);
	memcpy(text, data + (size > 0), size - (size > 0));
	text[size - (size > 0)] = '\0';
	if (layout_parse(text, world, &l, &err) < 0) {
		REQUIRE(err.text[0]);
		free(text);
		return 0;
	}
	REQUIRE(l.n_axes > 0 && l.n_axes <= LAYOUT_AXES_MAX);
	for (uint32_t axes = 0; axes < 1u << l.n_axes; axes++) {
		uint32_t rank = world * 2 / 3;
		struct radix r;

		layout_group(&l, axes, rank, &r);
		REQUIRE(world % radix_size(&r) == 0);
		REQUIRE(radix_at(&r, (uint32_t)radix_find(&r, rank)) == rank);
		REQUIRE(radix_at(&r, radix_size(&r) - 1) < world);
		REQUIRE(strlen(layout_axes_name(&l, axes, name, sizeof(name))) < sizeof(name));
	}
	free(text);
	return 0;
}
