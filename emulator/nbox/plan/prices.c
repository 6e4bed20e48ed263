/* See prices.h. */
#include "nbox/plan/prices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/yaml-file.h"

void prices_deinit(struct prices *p)
{
	free(p->list);
	*p = (struct prices){.list = NULL};
}

/* The current scalar as a price. */
static int read_price(struct yaml *y, double *ret)
{
	const char *text;
	char *end;
	int r = yaml_scalar(y, "a price", &text);

	if (r < 0)
		return r;
	*ret = strtod(text, &end);
	if (end == text || *end || !(*ret >= 0 && *ret < 1e12))
		return yaml_refuse(y, y->event.start_mark,
				   "'%s' is no price: a bare number, such as 98.3", text);
	return 0;
}

static int add(struct prices *p, const char *key, double price)
{
	struct price *grown = reallocarray(p->list, p->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	p->list = grown;
	snprintf(grown[p->n].key, sizeof(grown[p->n].key), "%s", key);
	grown[p->n++].node_hour = price;
	return 0;
}

/* The mapping behind node_hour. */
static int read_nodes(struct yaml *y, struct prices *p)
{
	int r = yaml_next(y);

	if (r == 0 && y->event.type != YAML_MAPPING_START_EVENT)
		return yaml_refuse(y, y->event.start_mark, "node_hour: lines such as default: 80");
	r = r == 0 ? yaml_next(y) : r;
	while (r == 0 && y->event.type != YAML_MAPPING_END_EVENT) {
		const char *text;
		char key[128];
		double price;

		r = yaml_scalar(y, "a kind of node", &text);
		if (r == 0 && strlen(text) >= sizeof(key))
			return yaml_refuse(y, y->event.start_mark, "this is too long");
		for (size_t i = 0; r == 0 && i < p->n; i++)
			if (strcmp(p->list[i].key, text) == 0)
				return yaml_refuse(y, y->event.start_mark,
						   "key '%s' is here a second time", text);
		if (r == 0)
			snprintf(key, sizeof(key), "%s", text);
		r = r == 0 ? yaml_next(y) : r;
		r = r == 0 ? read_price(y, &price) : r;
		r = r == 0 ? add(p, key, price) : r;
		r = r == 0 ? yaml_next(y) : r;
	}
	return r;
}

static int read_keys(struct yaml *y, struct prices *p)
{
	int r = yaml_next(y);

	while (r == 0 && y->event.type != YAML_MAPPING_END_EVENT) {
		const char *text;

		r = yaml_scalar(y, "a key", &text);
		if (r < 0)
			return r;
		if (strcmp(text, "node_hour") == 0) {
			r = read_nodes(y, p);
		} else if (strcmp(text, "currency") == 0) {
			r = yaml_next(y);
			r = r == 0 ? yaml_scalar(y, "currency", &text) : r;
			if (r == 0 && !text[0])
				return yaml_refuse(y, y->event.start_mark,
						   "the currency has no name");
			if (r == 0)
				snprintf(p->currency, sizeof(p->currency), "%s", text);
		} else {
			return yaml_refuse(y, y->event.start_mark,
					   "unknown key '%s': currency or node_hour", text);
		}
		r = r == 0 ? yaml_next(y) : r;
	}
	return r;
}

int prices_read(const char *path, struct prices *ret, struct err *err)
{
	CLEANUP(prices_deinit) struct prices p = {.currency = "USD"};
	CLEANUP(freep) char *text = NULL;
	struct yaml y;
	size_t n;
	int r = yaml_load(path, "price file", &text, &n, err);

	if (r < 0)
		return r;
	r = yaml_begin(&y, path, text, n, "currency, node_hour", err);
	r = r == 0 ? read_keys(&y, &p) : r;
	r = r == 0 ? yaml_end(&y) : r;
	yaml_deinit(&y);
	if (r == 0 && p.n == 0)
		r = err_set(err, EINVAL, "%s: there is no price in it: node_hour: {default: 80}",
			    path);
	if (r == 0) {
		*ret = p;
		p.list = NULL;
	}
	return r;
}

/* The options whose values are names of nodes; the one that says most first. */
static const enum option_id kinds[] = {CONFIG_INTER, CONFIG_FABRIC, CONFIG_PRESET,
				       CONFIG_INTER_BANDWIDTH};

static bool fits(const char *key, const struct config *c)
{
	size_t n = strcspn(key, "=");

	if (strcmp(key, "default") == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *text = config_text(c, kinds[i]);
		const char *slash = text && kinds[i] == CONFIG_FABRIC ? strrchr(text, '/') : NULL;

		if (text && (strcmp(key, text) == 0 || (slash && strcmp(key, slash + 1) == 0)))
			return true;
	}
	for (int id = 0; key[n] && id < CONFIG_OPTIONS; id++)
		if (strlen(options[id].name) == n && strncmp(options[id].name, key, n) == 0 &&
		    config_text(c, (enum option_id)id) &&
		    strcmp(config_text(c, (enum option_id)id), key + n + 1) == 0)
			return true;
	return false;
}

int prices_find(const struct prices *p, const struct config *c, double *ret, struct err *err)
{
	const char *key = NULL;

	for (size_t i = 0; i < p->n; i++)
		if (fits(p->list[i].key, c)) {
			*ret = p->list[i].node_hour;
			return 0;
		}
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !key; i++)
		key = config_text(c, kinds[i]);
	return err_set(err, ENOENT, "no line fits; add '%.100s: PRICE'%s", key ? key : "default",
		       key ? " or 'default: PRICE'" : "");
}
