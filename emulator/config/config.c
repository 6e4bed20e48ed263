/* Values from flags, variables and defaults; see config.h. Reading and writing
 * YAML: yaml-read.c, yaml-write.c. Conversion: convert.c; contradictions: check.c, check-link.c. */
#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/variables.h"

int config_new(struct config **ret)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const char *text = options[i].default_text;

		if (text && options[i].kind != KIND_RDMA &&
		    value_add(&c->values[i], SOURCE_DEFAULT, text, 0, 0) < 0) {
			config_free(c);
			return -ENOMEM;
		}
	}
	*ret = c;
	return 0;
}

struct config *config_free(struct config *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < CONFIG_OPTIONS; i++)
		value_clear(&c->values[i]);
	free(c->file);
	free(c->scenario);
	free(c->expects);
	free(c->real);
	classes_deinit(&c->classes);
	fabric_free(c->fabric);
	free(c->what_ifs);
	failures_free(c->failures, c->n_failures);
	link_changes_free(c->link_changes, c->n_link_changes);
	reshardings_free(c->reshardings, c->n_reshardings);
	free(c->addrs);
	free(c->alltoall);
	free(c->default_addr);
	free(c->net_devices);
	free(c->data_for);
	free(c);
	return NULL;
}

int config_set(struct config *c, enum option_id id, enum config_source source, const char *text)
{
	struct config_value *v = &c->values[id];

	if (v->source > source)
		return 0;
	if (!option_is_list(id) || v->source < source)
		value_clear(v);
	return value_add(v, source, text, 0, 0);
}

bool config_is_set(const struct config *c, enum option_id id)
{
	return c->values[id].n_items > 0 && c->values[id].source != SOURCE_DEFAULT;
}

const char *config_text(const struct config *c, enum option_id id)
{
	return c->values[id].n_items ? c->values[id].items[0].text : NULL;
}

char *config_where(const struct config *c, enum option_id id, size_t item, char *buf, size_t size)
{
	const struct config_value *v = &c->values[id];

	if (item < v->n_items && v->items[item].file) {
		snprintf(buf, size, "%s:%u:%u", v->items[item].file, v->items[item].line,
			 v->items[item].column);
		return buf;
	}
	switch (v->source) {
	case SOURCE_FLAG:
		snprintf(buf, size, "--%s", options[id].name);
		break;
	case SOURCE_VARIABLE:
		snprintf(buf, size, "%s", options[id].variable);
		break;
	case SOURCE_LAUNCHER:
		snprintf(buf, size, "as the launcher says");
		break;
	case SOURCE_FILE:
		if (item < v->n_items)
			snprintf(buf, size, "%s:%u:%u", c->file ? c->file : "?",
				 v->items[item].line, v->items[item].column);
		else
			snprintf(buf, size, "%s", c->file ? c->file : "?");
		break;
	case SOURCE_DEFAULT:
	default:
		snprintf(buf, size, "default %s", options[id].name);
		break;
	}
	return buf;
}

/* --- flags ---------------------------------------------------------------- */

int config_take(struct config *c, const struct option_word *w, struct err *err)
{
	const struct config_value *v = &c->values[w->id];

	if (!option_is_list(w->id) && v->source == SOURCE_FLAG && v->n_items)
		return err_set(err, EINVAL, "%s %s: given a second time, after %s", w->name,
			       w->value, v->items[0].text);
	return config_set(c, w->id, SOURCE_FLAG, w->value) < 0
		       ? err_set(err, ENOMEM, "%s: out of memory", w->name)
		       : 0;
}

/* --- variables ------------------------------------------------------------ */

/* Lists in a variable: separated by ';'. */
static int set_variable(struct config *c, enum option_id id, const char *text)
{
	CLEANUP(freep) char *copy = NULL;
	char *item, *save = NULL;
	int r;

	if (!option_is_list(id))
		return config_set(c, id, SOURCE_VARIABLE, text);
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	for (item = strtok_r(copy, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
		r = config_set(c, id, SOURCE_VARIABLE, item);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_environment(struct config *c, char *const *environment, struct err *err)
{
	int r = variable_check(environment, err);

	if (r < 0)
		return r;
	for (; environment && *environment; environment++) {
		const char *entry = *environment, *eq = strchr(entry, '=');

		/* An empty variable counts as unset, as in most shells' scripts. */
		if (!eq || !eq[1])
			continue;
		for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
			const char *name = options[i].variable;

			if (strlen(name) != (size_t)(eq - entry) ||
			    memcmp(name, entry, strlen(name)) != 0)
				continue;
			if (set_variable(c, (enum option_id)i, eq + 1) < 0)
				return err_set(err, ENOMEM, "%s: out of memory", name);
		}
	}
	return 0;
}

/* --- help ----------------------------------------------------------------- */

void config_help(enum command command, FILE *f, const struct config *defaults)
{
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const struct option *o = &options[i];

		if (!(o->commands & command))
			continue;
		option_print(o, 28,
			     defaults && o->kind != KIND_RDMA
				     ? config_text(defaults, (enum option_id)i)
				     : o->default_text,
			     f);
		fprintf(f, "  %-28s %s, %s%s\n", "", o->variable, o->key,
			o->kind == KIND_LIST  ? " (a list)"
			: o->kind == KIND_MAP ? " (a map)"
					      : "");
	}
}
