/* Control frames, a header and a body: the inner counts of a frame that is accepted stay inside
 * it. */
#include "fuzz.h"

#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {""};
	struct wire_hdr h;
	int r;

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	/* Get past the parts that a fuzzer finds slowly. */
	h.magic = WIRE_MAGIC;
	h.version = WIRE_VERSION;
	if (h.body_bytes != size - sizeof(h)) {
		r = wire_hdr_check(&h, &err);
		if (!r != !err.text[0])
			abort();
		h.body_bytes = size - sizeof(h);
	}
	err.text[0] = '\0';
	r = wire_body_check(&h, data + sizeof(h), &err);
	if (!r != !err.text[0])
		abort();
	if (!r && h.type == WIRE_COMM_READY) {
		struct wire_comm_ready m;

		memcpy(&m, data + sizeof(h), sizeof(m));
		if (sizeof(m) + m.n_real * sizeof(struct wire_member) != h.body_bytes)
			abort();
	}
	return 0;
}
