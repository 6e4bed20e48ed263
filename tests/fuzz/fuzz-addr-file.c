/* The reader of nboxd.addr on any bytes: it gives an error with a sentence, or an address and a
 * token that fit. */
#include "fuzz.h"

#include "config/addr-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct addr_file a;
	struct err err = {""};

	memset(&a, 0x55, sizeof(a));
	if (addr_file_parse((const char *)data, size, &a, &err) < 0) {
		if (!err.text[0] || a.pid != 0x55555555)
			abort();
		return 0;
	}
	if (!a.addr[0] || strnlen(a.addr, sizeof(a.addr)) == sizeof(a.addr) || a.pid <= 0 ||
	    strnlen(a.token, sizeof(a.token)) == sizeof(a.token))
		abort();
	return 0;
}
