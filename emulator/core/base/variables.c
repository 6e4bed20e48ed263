/* See variables.h. The names and kinds come from options.def. */
#include "base/variables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"

#define PREFIX "NBOX_"
#define OF_TESTS "NBOX_TEST_"

static const char *const names[] = {
#define OPTION(id, name, variable, key, kind, default_text, arg, help, choices) variable,
#define VARIABLE(name, kind, choices) name,
#include "base/options.def"
};

/* Kinds of the variables that have no flag. */
enum kind { VARIABLE_TEXT, VARIABLE_TIME, VARIABLE_COUNT, VARIABLE_CHOICE };
#define CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})
static const struct {
	const char *name;
	enum kind kind;
	const char *const *choices;
} values[] = {
#define VARIABLE(name, kind, choices) {name, kind, choices},
#include "base/options.def"
};

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

/* Is @entry, "NAME=VALUE" or "NAME", a variable of the table, or of tests? */
static bool is_known(const char *entry)
{
	size_t len = name_length(entry);

	if (!strncmp(entry, OF_TESTS, strlen(OF_TESTS)))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], entry, len))
			return true;
	return false;
}

const char *variable_first_unknown(char *const *environment)
{
	for (; environment && *environment; environment++) {
		const char *entry = *environment, *value = entry + name_length(entry);

		/* An empty variable counts as unset, as in most shells' scripts. */
		if (!strncmp(entry, PREFIX, strlen(PREFIX)) && value[0] && value[1] &&
		    !is_known(entry))
			return entry;
	}
	return NULL;
}

static int check_choice(const char *text, const char *const *choices, struct err *err)
{
	size_t i;

	for (i = 0; choices[i]; i++)
		if (strcmp(text, choices[i]) == 0)
			return 0;
	return err_set(err, EINVAL, "'%.64s' is none of %s%s%s%s%s", text, choices[0],
		       i > 2 ? ", " : " and ", choices[1], i > 2 ? ", " : "",
		       i > 2 ? choices[2] : "");
}

static int check_value(size_t i, const char *text, struct err *err)
{
	uint64_t n;
	double ns;
	int r = 0;

	switch (values[i].kind) {
	case VARIABLE_TIME:
		r = units_time(text, &ns, err);
		break;
	case VARIABLE_COUNT:
		r = units_count(text, &n, err);
		break;
	case VARIABLE_CHOICE:
		r = check_choice(text, values[i].choices, err);
		break;
	case VARIABLE_TEXT:
		break;
	}
	return r < 0 ? err_prefix(err, r, "%s", values[i].name) : 0;
}

int variable_check(char *const *environment, struct err *err)
{
	const char *unknown = variable_first_unknown(environment);
	char text[256];
	int r = 0;

	if (unknown)
		return err_set(err, EINVAL, "variable %s",
			       variable_unknown_text(unknown, text, sizeof(text)));
	for (; r == 0 && environment && *environment; environment++) {
		const char *entry = *environment, *value = entry + name_length(entry);

		for (size_t i = 0; r == 0 && value[0] && value[1] && i < ARRAY_SIZE(values); i++)
			if (strlen(values[i].name) == name_length(entry) &&
			    !memcmp(values[i].name, entry, name_length(entry)))
				r = check_value(i, value + 1, err);
	}
	return r;
}

char *variable_unknown_text(const char *entry, char *buf, size_t size)
{
	char name[64];
	const char *near;

	snprintf(name, sizeof(name), "%.*s", (int)name_length(entry), entry);
	near = suggest(name, names, ARRAY_SIZE(names));
	if (near)
		snprintf(buf, size, "%s is unknown; did you mean '%s'?", name, near);
	else
		snprintf(buf, size, "%s is unknown; nbox run --help lists the variables; unset it",
			 name);
	return buf;
}
