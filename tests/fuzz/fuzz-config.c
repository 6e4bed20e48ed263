/* The reader of cluster files on any bytes: it gives an error with a place, or a configuration
 * that is accepted and stays the same when it is written and read again. */
#include "fuzz.h"

#include "config/config.h"

static char *write_out(const struct config *c)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	REQUIRE(f && config_write(c, f) == 0);
	fclose(f);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c, *again;
	struct err err = {""};
	char *text;

	REQUIRE(config_new(&c) == 0);
	if (config_parse(c, "fuzz", (const char *)data, size, &err) < 0 ||
	    config_finish(c, &err) < 0) {
		REQUIRE(err.text[0]);
		config_free(c);
		return 0;
	}
	REQUIRE(c->n_real > 0 && c->real[c->n_real - 1] < c->world && c->world <= 65536);
	text = write_out(c);
	REQUIRE(config_new(&again) == 0);
	REQUIRE(config_parse(again, "again", text, strlen(text), &err) == 0);
	/* The token is a secret that the written file does not have. */
	if (c->values[CONFIG_TOKEN].n_items)
		config_set(again, CONFIG_TOKEN, SOURCE_FLAG, c->values[CONFIG_TOKEN].items[0].text);
	REQUIRE(config_finish(again, &err) == 0);
	REQUIRE(again->world == c->world && again->n_real == c->n_real && again->seed == c->seed &&
		again->n_what_ifs == c->n_what_ifs && strcmp(again->model, c->model) == 0 &&
		again->chunk_bytes == c->chunk_bytes && again->exchange == c->exchange &&
		memcmp(again->algo, c->algo, sizeof(c->algo)) == 0);
	free(text);
	config_free(again);
	config_free(c);
	return 0;
}
