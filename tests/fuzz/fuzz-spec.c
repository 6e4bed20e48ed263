/* The parser of "name:key=value,..." of --model and --what-if on any text: what it accepts has a
 * name and different keys, each with a value. */
#include "fuzz.h"

#include "engine/delay-host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct delay_chain chain;
	struct delay_instance in = {.chain = &chain};
	char *spec = malloc(size + 1);
	const char *name = NULL;
	struct err err = {""};

	REQUIRE(spec);
	memcpy(spec, data, size);
	spec[size] = '\0';
	if (delay_spec_parse(&in, spec, &name, &err) == 0) {
		REQUIRE(name && name[0] && in.n_kv <= DELAY_MAX_PARAMS);
		for (size_t i = 0; i < in.n_kv; i++) {
			REQUIRE(in.kv[i].key[0] && in.kv[i].value[0]);
			for (size_t j = 0; j < i; j++)
				REQUIRE(strcmp(in.kv[i].key, in.kv[j].key) != 0);
		}
	} else {
		REQUIRE(err.text[0]);
	}
	free(in.text);
	free(spec);
	return 0;
}
