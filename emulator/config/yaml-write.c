/* Writes the effective configuration as a cluster file; see config.h. The keys of
 * the table are in the order of their groups, so nesting is a matter of comparing
 * each key with the one before. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/config.h"
#include "config/kept-file.h"

/* A double-quoted scalar: the only form that holds any text. */
static void write_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			fprintf(f, "\\x%02x", (unsigned)(unsigned char)*text);
		else
			fputc(*text, f);
	}
	fputc('"', f);
}

static void indent(FILE *f, size_t level)
{
	fprintf(f, "%*s", (int)(2 * level), "");
}

/* Opens the groups of @key that are not those of @before. Return: the depth. */
static size_t open_groups(FILE *f, const char *before, const char *key)
{
	const char *start = key, *dot;
	size_t level = 0;

	while ((dot = strchr(start, '.'))) {
		size_t n = (size_t)(dot - key) + 1;

		if (strncmp(before, key, n) != 0) {
			indent(f, level);
			fprintf(f, "%.*s:\n", (int)(dot - start), start);
			before = "";
		}
		start = dot + 1;
		level++;
	}
	return level;
}

static const char *last_part(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

static void write_source(FILE *f, const struct config *c, enum option_id id)
{
	char where[256];

	fprintf(f, "  # %s\n", config_where(c, id, 0, where, sizeof(where)));
}

/* Given in a file, hops would make a fabric of their own, and these pin what a model decides. */
static bool is_default_that_counts(const struct config *c, enum option_id id)
{
	bool is_hop = id >= CONFIG_INTRA_LATENCY && id <= CONFIG_INTER_BANDWIDTH;

	return (is_hop || id == CONFIG_CHANNELS || id == CONFIG_CHUNK) && !config_is_set(c, id);
}

/* An option that another run of the same cluster file must choose anew is written as a comment. */
static bool is_of_this_run(const struct config *c, enum option_id id)
{
	const struct config_value *v = &c->values[id];

	if (id == CONFIG_ADDR)
		return v->n_items == 1 &&
		       strncmp(v->items[0].text, CONFIG_ADDR_AUTO, strlen(CONFIG_ADDR_AUTO)) == 0;
	return id == CONFIG_OUT;
}

static void write_option(FILE *f, const struct config *c, enum option_id id, size_t level)
{
	const struct option *o = &options[id];
	const struct config_value *v = &c->values[id];

	indent(f, level);
	fprintf(f, "%s%s:", is_of_this_run(c, id) ? "# " : "", last_part(o->key));
	/* A given address has said which; what is written must not contradict it. */
	if (id == CONFIG_LINK && !config_is_set(c, id) && config_is_set(c, CONFIG_ADDR) &&
	    c->addr) {
		fprintf(f, " \"%.*s\"  # from addr\n", (int)strcspn(c->addr, ":"), c->addr);
		return;
	}
	if (!option_is_list(id) || is_of_this_run(c, id)) {
		fputc(' ', f);
		write_quoted(f, v->items[0].text);
		write_source(f, c, id);
		return;
	}
	write_source(f, c, id);
	for (size_t i = 0; i < v->n_items; i++) {
		const char *text = v->items[i].text, *eq = strchr(text, '=');

		indent(f, level + 1);
		if (o->kind == KIND_MAP && eq) {
			fprintf(f, "%.*s: ", (int)(eq - text), text);
			text = eq + 1;
		} else {
			fputs("- ", f);
		}
		write_quoted(f, text);
		fputc('\n', f);
	}
}

/* An option that names a file, with the name of its copy. */
static void write_kept(FILE *f, const struct config *c, enum option_id id, size_t level)
{
	char text[PATH_MAX + 256];

	indent(f, level);
	fprintf(f, "%s: ", last_part(options[id].key));
	write_quoted(f, kept_file_text(c, id, text, sizeof(text)));
	write_source(f, c, id);
}

/* What the default was derived to. */
static void write_derived(FILE *f, const struct config *c, enum option_id id, size_t level)
{
	const char *name = last_part(options[id].key);

	if (id == CONFIG_REAL && c->n_real) {
		indent(f, level);
		fprintf(f, "# %s: ranks %u to %u, those of node %u\n", name, c->real[0],
			c->real[c->n_real - 1], c->as_node);
	}
}

static int write_all(const struct config *c, bool is_kept, FILE *f)
{
	const char *before = "";

	fprintf(f,
		CONFIG_MARK
		"%s: the configuration that was in force; a cluster file of the same run\n",
		NBOX_VERSION);
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const char *key = options[i].key;
		bool derived = c->values[i].n_items == 0;
		size_t level, n;

		if (derived && i != CONFIG_REAL)
			continue;
		/* Derived defaults are known after config_finish() only. */
		if (derived && !c->world)
			continue;
		/* A given world may have given the nodes. */
		if (i == CONFIG_NODES && c->world && !config_is_set(c, CONFIG_NODES)) {
			open_groups(f, before, key);
			fprintf(f, "  nodes: \"%u\"  # %s\n", c->topology.n_nodes,
				config_is_set(c, CONFIG_WORLD) ? "from world" : "default nodes");
			before = key;
			continue;
		}
		/* Either says which ranks are real. */
		if (i == CONFIG_AS_NODE && c->values[CONFIG_REAL].n_items)
			continue;
		if ((i == CONFIG_PAYLOAD_WORK || i == CONFIG_PAYLOAD_MEMORY) &&
		    c->exchange != EXCHANGE_PAYLOAD)
			continue;
		if (i == CONFIG_TOKEN) {
			open_groups(f, before, key);
			fputs("  # token: (a secret; give NBOX_TOKEN again)\n", f);
			before = key;
			continue;
		}
		if (is_default_that_counts(c, (enum option_id)i)) {
			fprintf(f, "# %s: %s", key, c->values[i].items[0].text);
			write_source(f, c, (enum option_id)i);
			continue;
		}
		level = open_groups(f, before, key);
		if (derived)
			write_derived(f, c, (enum option_id)i, level);
		else if (is_kept && kept_file(c, (enum option_id)i, &n))
			write_kept(f, c, (enum option_id)i, level);
		else
			write_option(f, c, (enum option_id)i, level);
		before = key;
	}
	return fflush(f) != 0 ? -errno : ferror(f) ? -EIO : 0;
}

int config_write(const struct config *c, FILE *f)
{
	return write_all(c, false, f);
}

int config_write_run(const struct config *c, const char *dir, FILE *f)
{
	int r = kept_files_keep(c, dir);

	return r < 0 ? r : write_all(c, true, f);
}
