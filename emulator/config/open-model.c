/* See open-model.h. */
#include "config/open-model.h"

#include "config/convert.h"

/* The first @n what-ifs around the model. */
static int open_first(const struct config *c, size_t n, const char *const *dirs,
		      struct delay_chain **ret, struct err *err)
{
	return delay_open(c->model, NULL, c->what_ifs, n, &c->topology, dirs, c->seed, ret, err);
}

/* How many what-ifs open around the model; -1: the model does not. */
static long count_good(const struct config *c, const char *const *dirs)
{
	for (size_t n = 0; n <= c->n_what_ifs; n++) {
		struct delay_chain *chain = NULL;
		int r = open_first(c, n, dirs, &chain, NULL);

		delay_free(chain);
		if (r < 0)
			return (long)n - 1;
	}
	return (long)c->n_what_ifs;
}

int open_model(const struct config *c, const char *const *dirs, struct delay_chain **ret,
	       struct err *err)
{
	int r = open_first(c, c->n_what_ifs, dirs, ret, err);
	long good = r < 0 ? count_good(c, dirs) : 0;
	const struct config_value *v = &c->values[CONFIG_WHAT_IF];
	char where[VALUE_WHERE_MAX];

	if (r == 0 || good == (long)c->n_what_ifs)
		return r;
	if (good < 0)
		return !config_is_set(c, CONFIG_MODEL)
			       ? r
			       : err_prefix(err, r, "%s",
					    config_where(c, CONFIG_MODEL, 0, where, sizeof(where)));
	for (size_t i = 0; i < v->n_items; i++) /* `fail` stands among them */
		if (v->items[i].text == c->what_ifs[good])
			return err_prefix(err, r, "%s",
					  config_where(c, CONFIG_WHAT_IF, i, where, sizeof(where)));
	return r;
}
