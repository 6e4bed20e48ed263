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
		const char *text = config_options[i].default_text;

		if (text && value_add(&c->values[i], SOURCE_DEFAULT, text, 0, 0) < 0) {
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
	free(c->real);
	free(c->what_ifs);
	failures_free(c->failures, c->n_failures);
	free(c->addrs);
	free(c->default_addr);
	free(c->data_for);
	free(c);
	return NULL;
}

int config_set(struct config *c, enum config_id id, enum config_source source, const char *text)
{
	struct config_value *v = &c->values[id];

	if (v->source > source)
		return 0;
	if (!option_is_list(id) || v->source < source)
		value_clear(v);
	return value_add(v, source, text, 0, 0);
}

bool config_is_set(const struct config *c, enum config_id id)
{
	return c->values[id].n_items > 0 && c->values[id].source != SOURCE_DEFAULT;
}

const char *config_text(const struct config *c, enum config_id id)
{
	return c->values[id].n_items ? c->values[id].items[0].text : NULL;
}

char *config_where(const struct config *c, enum config_id id, size_t item, char *buf, size_t size)
{
	const struct config_value *v = &c->values[id];

	switch (v->source) {
	case SOURCE_FLAG:
		snprintf(buf, size, "--%s", config_options[id].name);
		break;
	case SOURCE_VARIABLE:
		snprintf(buf, size, "%s", config_options[id].variable);
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
		snprintf(buf, size, "default %s", config_options[id].name);
		break;
	}
	return buf;
}

char *config_model(const struct config *c, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size, "%s", c->model), i;

	for (i = 0; i < c->n_what_ifs && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, " + %s", c->what_ifs[i]);
	for (i = 0; i < c->n_failures && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, " + %s", c->failures[i].text);
	return buf;
}

/* --- flags ---------------------------------------------------------------- */

int config_arg(struct config *c, int argc, char *const argv[], int *index, struct err *err)
{
	const char *word = argv[*index], *value;
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return CONFIG_NOT_MINE;
	word += 2;
	len = strcspn(word, "=");
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const char *name = config_options[i].name;
		int r;

		if (strlen(name) != len || memcmp(name, word, len) != 0)
			continue;
		if (word[len] == '=') {
			value = word + len + 1;
			*index += 1;
		} else {
			value = *index + 1 < argc ? argv[*index + 1] : NULL;
			if (!value || !strncmp(value, "--", 2))
				return err_set(err, EINVAL, "--%s: needs a value: --%s %s%s%s%s",
					       name, name, config_options[i].arg,
					       value ? " (not " : "", value ? value : "",
					       value ? ")" : "");
			*index += 2;
		}
		if (!option_is_list((enum config_id)i) && c->values[i].source == SOURCE_FLAG &&
		    c->values[i].n_items)
			return err_set(err, EINVAL, "--%s %s: given a second time, after %s", name,
				       value, c->values[i].items[0].text);
		r = config_set(c, (enum config_id)i, SOURCE_FLAG, value);
		return r < 0 ? err_set(err, ENOMEM, "--%s: out of memory", name) : 0;
	}
	return CONFIG_NOT_MINE;
}

int config_unknown_flag(const char *word, const char *const *others, size_t n_others,
			struct err *err)
{
	char names[CONFIG_OPTIONS][32], head[64];
	const char **list, *near;
	size_t n = 0;

	snprintf(head, sizeof(head), "%.*s", (int)strcspn(word, "="), word);
	list = calloc(CONFIG_OPTIONS + n_others, sizeof(*list));
	if (!list)
		return err_set(err, EINVAL, "unknown option '%s'", head);
	for (; n < CONFIG_OPTIONS; n++) {
		snprintf(names[n], sizeof(names[n]), "--%s", config_options[n].name);
		list[n] = names[n];
	}
	for (size_t i = 0; i < n_others; i++)
		list[n++] = others[i];
	/* of a letter nothing is near */
	near = strlen(head) > 4 ? suggest_long(head, list, n) : suggest(head, list, n);
	if (near)
		err_set(err, EINVAL, "unknown option '%s'; did you mean '%s'?", head, near);
	else
		err_set(err, EINVAL, "unknown option '%s'; see --help", head);
	free(list);
	return -EINVAL;
}

/* --- variables ------------------------------------------------------------ */

/* Lists in a variable: separated by ';'. */
static int set_variable(struct config *c, enum config_id id, const char *text)
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
			const char *name = config_options[i].variable;

			if (strlen(name) != (size_t)(eq - entry) ||
			    memcmp(name, entry, strlen(name)) != 0)
				continue;
			if (set_variable(c, (enum config_id)i, eq + 1) < 0)
				return err_set(err, ENOMEM, "%s: out of memory", name);
		}
	}
	return 0;
}

/* --- help ----------------------------------------------------------------- */

void config_help(FILE *f, const struct config *defaults)
{
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const struct config_option *o = &config_options[i];
		const char *text =
			defaults ? config_text(defaults, (enum config_id)i) : o->default_text;
		char flag[64];

		snprintf(flag, sizeof(flag), "--%s %s", o->name, o->arg);
		fprintf(f, "  %-28s %s", flag, o->help);
		for (size_t k = 0; o->choices && o->choices[k]; k++)
			fprintf(f, "%s%s", k ? ", " : "", o->choices[k]);
		if (text)
			fprintf(f, " [%s]", text);
		fprintf(f, "\n  %-28s %s, %s%s\n", "", o->variable, o->key,
			o->kind == KIND_LIST  ? " (a list)"
			: o->kind == KIND_MAP ? " (a map)"
					      : "");
	}
}
