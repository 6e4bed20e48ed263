/* The options of all commands, and the one parser of their command lines. The table is options.def.
 *
 *   --name VALUE, --name=VALUE, -bVALUE, -b VALUE
 *
 * The parser says what a word is. What a value means its command decides. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Of a run: CONFIG_..., those of config/config.h, in the order of the table; then the flags of
 * commands. */
enum option_id {
#define OPTION(id, name, variable, key, kind, default_text, arg, help, choices) CONFIG_##id,
#include "base/options.def"
	CONFIG_OPTIONS,
	FLAGS_BEGIN = CONFIG_OPTIONS - 1,
#define FLAG(id, name, letter, arg, default_text, help, choices, commands) FLAG_##id,
#include "base/options.def"
	OPTIONS
};

enum option_kind {
	KIND_FLAG, /* given on the command line alone */
	KIND_COUNT,
	KIND_SEED,
	KIND_TIME,
	KIND_BYTES,
	KIND_BANDWIDTH,
	KIND_RATIO,
	KIND_RANKS,
	KIND_TEXT,
	KIND_CHOICE,
	KIND_LIST, /* YAML: a list; flag: repeated; variable: separated by ';' */
	KIND_MAP,  /* a list of KEY=VALUE; YAML: a mapping */
	KIND_RDMA, /* links/rdma/options.c has what it means, and applies its default */
};

/* Commands that have options, as bits: the table has them, too. */
enum command_number {
#define COMMAND(id, own_help) COMMAND_NUMBER_##id,
#include "base/options.def"
	COMMANDS
};
enum command {
#define COMMAND(id, own_help) COMMAND_##id = INT64_C(1) << COMMAND_NUMBER_##id,
#include "base/options.def"
	COMMAND_EVERY = (INT64_C(1) << COMMANDS) - 1
};

struct option {
	const char *name;           /* without its dashes */
	char letter;                /* behind one dash; 0: none */
	const char *variable, *key; /* NULL: of a flag; dots between the levels of the YAML file */
	enum option_kind kind;
	const char *default_text;   /* NULL: none, or derived; help says what from */
	const char *arg;            /* as shown in the help; NULL: it takes no value */
	const char *help;           /* NULL: the command describes it */
	const char *const *choices; /* ends with NULL; NULL: any */
	uint64_t commands;          /* that have it */
};
extern const struct option options[OPTIONS]; /* by enum option_id */

bool option_is_list(enum option_id id); /* it may be given several times */

struct option_word {
	enum option_id id;
	const char *value; /* borrowed; NULL: it takes none */
	char name[32];     /* as typed: "--nodes", "-b" */
};

/* Takes argv[*index], and the next word where that is its value. Return: 0, *index is behind them;
 * OPTION_NONE the word has no dash; -EINVAL with the sentence, also of one that @command has not.
 */
enum { OPTION_NONE = 1 };
int option_take(enum command command, int argc, char *const argv[], int *index,
		struct option_word *ret, struct err *err);
/* "unknown option '--modle'; did you mean '--model'?" Return: -EINVAL. */
int option_unknown(enum command command, const char *word, struct err *err);

/* A line of --help; texts begin behind @width columns. @default_text: NULL: none is shown. */
void option_print(const struct option *o, int width, const char *default_text, FILE *to);
/* The lines of @command's flags. */
void option_help(enum command command, int width, FILE *to);
