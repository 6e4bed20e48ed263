/* What the real ranks of a gloo group send to nboxd: an address, which is a value of the store,
 * and frames on a connection. The first byte chooses between the two. */
#include "fuzz.h"

#include "nboxd/store/gloo/gloo.h"

static void address(const uint8_t *data, size_t size)
{
	struct gloo_address a, again;
	struct buffer b;

	if (gloo_address_parse((struct store_bytes){data, size}, &a) < 0)
		return;
	if (a.n_peers > size / 8)
		abort();
	if (gloo_address_write(&a.sockaddr, 1, a.n_peers, &b) < 0)
		abort();
	if (gloo_address_parse((struct store_bytes){b.data, b.n}, &again) < 0 ||
	    again.n_peers != a.n_peers)
		abort();
	buffer_deinit(&b);
}

static void frames(const uint8_t *data, size_t size)
{
	struct gloo_frame f;

	while (gloo_frame_look(data, size, &f) == 1) {
		if (f.n_bytes < sizeof(f) || f.n_bytes > size || f.length > GLOO_LENGTH_MAX ||
		    !*gloo_kind_name(gloo_kind(f.slot)))
			abort();
		data += f.n_bytes;
		size -= f.n_bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		address(data + 1, size - 1);
	else
		frames(data + 1, size - 1);
	return 0;
}
