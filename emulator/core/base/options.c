/* See options.h. */
#include "base/options.h"

#include <errno.h>
#include <string.h>

#include "base/suggest.h"

#define CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { /* as options.def calls them */
#define COMMAND(id, own_help) id = COMMAND_##id,
#include "base/options.def"
       EVERY = COMMAND_EVERY
};

#define OF_RUNS                                                                           \
	(COMMAND_RUN | COMMAND_PERF | COMMAND_NBOXD | COMMAND_EXPLAIN | COMMAND_TOPO |    \
	 COMMAND_VALIDATE | COMMAND_RETIME | COMMAND_SWEEP | COMMAND_PLAN | COMMAND_WHY | \
	 COMMAND_REPLAY | COMMAND_DIAGNOSE | COMMAND_OPTIMIZE)

const struct option options[OPTIONS] = {
#define COST_OPTION(commands, id, name, variable, key, kind, default_text, arg, help, choices) \
	{name, 0, variable, key, kind, default_text, arg, help, choices, OF_RUNS | commands},
#define OPTION(...) COST_OPTION(0, __VA_ARGS__)
#include "base/options.def"
#define FLAG(id, name, letter, arg, default_text, help, choices, commands) \
	{name, letter, NULL, NULL, KIND_FLAG, default_text, arg, help, choices, commands},
#include "base/options.def"
};

/* The name of a subcommand whose errors point to its own --help; NULL: of another. */
static const char *own_help(enum command command)
{
	static const char *const names[] = {
#define COMMAND(id, own_help) own_help,
#include "base/options.def"
	};

	return names[__builtin_ctzll(command)];
}

int option_unknown(enum command command, const char *word, struct err *err)
{
	const char *list[OPTIONS], *near, *own = own_help(command);
	char names[OPTIONS][32], head[64];
	size_t n = 0;

	snprintf(head, sizeof(head), "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].commands & command) {
			snprintf(names[n], sizeof(names[n]), "--%s", options[i].name);
			list[n] = names[n];
			n++;
		}
	/* of a letter nothing is near */
	near = strlen(head) > 4 ? suggest_long(head, list, n) : suggest(head, list, n);
	if (near)
		return err_set(err, EINVAL, "unknown option '%s'; did you mean '%s'?%s%s%s", head,
			       near, own ? " See nbox " : "", own ? own : "", own ? " --help" : "");
	return err_set(err, EINVAL, "unknown option '%s'; see %s%s%s--help", head,
		       own ? "nbox " : "", own ? own : "", own ? " " : "");
}

bool option_is_list(enum option_id id)
{
	return options[id].kind == KIND_LIST || options[id].kind == KIND_MAP || id == FLAG_EXPECT ||
	       id == FLAG_COUNTS || id == FLAG_SWEEP_LIST || id == FLAG_PIPE_WITH ||
	       id == FLAG_TRACE_SKEW || id == FLAG_PREDICT_SCALE || id == FLAG_SHARD_TABLES;
}

/* The option that begins @word; its value where that is in the same word. */
static const struct option *find(enum command command, const char *word, const char **ret_value)
{
	for (const struct option *o = options; o < options + OPTIONS; o++) {
		size_t len = strlen(o->name);

		if (!(o->commands & command))
			continue;
		if (o->letter && word[1] == o->letter && (o->arg || !word[2])) {
			*ret_value = word[2] ? word + 2 : NULL;
			return o;
		}
		if (word[1] == '-' && strncmp(word + 2, o->name, len) == 0 &&
		    strchr("=", word[2 + len])) {
			*ret_value = word[2 + len] ? word + 3 + len : NULL;
			return o;
		}
	}
	return NULL;
}

/* The value of a flag among the words before the one at @index; NULL: it is not there. */
static const char *given_before(enum command command, char *const argv[], int index,
				const struct option *o)
{
	const char *value = NULL;

	for (int i = 0; i < index; i++)
		if (argv[i][0] == '-' && find(command, argv[i], &value) == o)
			return value ? value : argv[i + 1];
	return NULL;
}

/* Whether its value is a file to be written, or "-", standard output. */
static bool is_written(const struct option *o)
{
	static const char *const names[] = {"json", "trace", "svg",     "dot",
					    "csv",  "out",   "metrics", "inspector"};

	for (size_t i = 0; o->kind == KIND_FLAG && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(o->name, names[i]) == 0)
			return true;
	return false;
}

/* The option before @index that is written to @path; NULL: none. */
static const struct option *written_before(enum command command, char *const argv[], int index,
					   const char *path)
{
	for (int i = 0; i < index; i++) {
		const char *value = NULL;
		const struct option *o = argv[i][0] == '-' ? find(command, argv[i], &value) : NULL;

		if (o && o->arg && is_written(o) && strcmp(value ? value : argv[i + 1], path) == 0)
			return o;
	}
	return NULL;
}

/* @next: the word behind it, which is an option; NULL: there is none. */
static int no_value(enum command command, const struct option *o, const char *name,
		    const char *next, struct err *err)
{
	if (o->kind != KIND_FLAG)
		return err_set(err, EINVAL, "%s: needs a value: %s %s%s%s%s", name, name, o->arg,
			       next ? " (not " : "", next ? next : "", next ? ")" : "");
	if (command == COMMAND_STATUS || command == COMMAND_DOCTOR)
		return err_set(err, EINVAL, "%s needs a value; see nbox %s --help", name,
			       own_help(command));
	if (o->commands & COMMAND_RUN && command != COMMAND_REPORT)
		return err_set(err, EINVAL, "%s needs a value: %s", name, o->help);
	return err_set(err, EINVAL, "%s needs a value: %s %s", name, name, o->arg);
}

int option_take(enum command command, int argc, char *const argv[], int *index,
		struct option_word *ret, struct err *err)
{
	const char *word = argv[*index], *next = *index + 1 < argc ? argv[*index + 1] : NULL;
	struct option_word w = {.value = NULL};
	const char *before;
	const struct option *o, *written;
	int n = 1;

	if (word[0] != '-')
		return OPTION_NONE;
	o = find(command, word, &w.value);
	if (!o)
		return option_unknown(command, word, err);
	w.id = (enum option_id)(o - options);
	if (word[1] == '-')
		snprintf(w.name, sizeof(w.name), "--%s", o->name);
	else
		snprintf(w.name, sizeof(w.name), "-%c", o->letter);
	if (!o->arg && w.value)
		return err_set(err, EINVAL, "%s takes no value", w.name);
	if (o->arg && !w.value) {
		if (!next || strncmp(next, "--", 2) == 0)
			return no_value(command, o, w.name, next, err);
		w.value = next;
		n = 2;
	}
	if (o->arg && !w.value[0] && (o->kind == KIND_FLAG || w.id == CONFIG_OUT))
		return no_value(command, o, w.name, NULL, err);
	before = o->arg && o->kind == KIND_FLAG && !option_is_list(w.id)
			 ? given_before(command, argv, *index, o)
			 : NULL;
	if (before)
		return err_set(err, EINVAL, "%s %s: given a second time, after %s", w.name, w.value,
			       before);
	written = o->arg && is_written(o) ? written_before(command, argv, *index, w.value) : NULL;
	if (written)
		return err_set(err, EINVAL, "--%s and %s both go to %s", written->name, w.name,
			       strcmp(w.value, "-") ? w.value : "standard output");
	*index += n;
	*ret = w;
	return 0;
}

void option_print(const struct option *o, int width, const char *default_text, FILE *to)
{
	char flag[64], letter[] = {'-', o->letter, ',', ' ', '\0'};

	snprintf(flag, sizeof(flag), "%s--%s%s%s", o->letter ? letter : "", o->name,
		 o->arg ? " " : "", o->arg ? o->arg : "");
	fprintf(to, "  %-*s %s", width, flag, o->help);
	for (size_t i = 0; o->choices && o->choices[i]; i++)
		fprintf(to, "%s%s", i ? ", " : "", o->choices[i]);
	if (default_text)
		fprintf(to, " [%s]", default_text);
	fputc('\n', to);
}

void option_help(enum command command, int width, FILE *to)
{
	for (size_t i = CONFIG_OPTIONS; i < OPTIONS; i++)
		if (options[i].commands & command && options[i].help)
			option_print(&options[i], width, options[i].default_text, to);
}
