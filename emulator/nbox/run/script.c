/* See script.h. */
#include "nbox/run/script.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/run/launcher-options.h"
#include "nbox/run/program.h"

#define SCRIPT_MAX (1 << 16)
#define WORDS_MAX 64

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list && strcmp(word, *list) != 0)
		list++;
	return *list;
}

static bool is_shell(const char *word)
{
	return is_one_of(basename(word),
			 (const char *const[]){"sh", "bash", "dash", "zsh", "ksh", NULL});
}

/* The text of the script that @command runs, the caller's. *ret_name: as the user calls it. NULL:
 * it runs none, or one in another language. */
static char *read_script(char *const *command, const char **ret_name, bool *ret_is_python)
{
	const char *script = program_python_script(command);
	CLEANUP(freep) char *text = NULL;
	char path[PATH_MAX];
	size_t n;

	*ret_is_python = script;
	*ret_name = script;
	if (!script && is_shell(command[0])) {
		for (command++; *command && (*command)[0] == '-'; command++)
			if ((*command)[1] != '-' && strchr(*command, 'c')) {
				*ret_name = *command;
				return command[1] ? strdup(command[1]) : NULL;
			}
		*ret_name = script = *command;
	} else if (!script) {
		*ret_name = command[0];
		script = program_find(command[0], path);
		command = NULL;
	}
	if (!script || file_read(script, SCRIPT_MAX, &text, &n, NULL) < 0)
		return NULL;
	if (!command) { /* the first line says what it is */
		char *end = text + strcspn(text, "\n"), *shell = strstr(text, "sh"),
		     *python = strstr(text, "python");

		*ret_is_python = python && python < end;
		if (strncmp(text, "#!", 2) != 0 || (!*ret_is_python && (!shell || shell >= end)))
			return NULL;
	}
	return steal_ptr(text);
}

/* The launcher that a line of a shell script runs; NULL: none. @line is cut up. */
static const char *launcher_in(char *line)
{
	static const char *const before[] = {"exec", "command", "nohup", "if", "then",
					     "else", "do",      "!",     NULL};
	char *rest = NULL, *save, *words[WORDS_MAX + 1], *comment = strstr(line, " #");
	size_t at;

	if (comment)
		*comment = 0;
	for (char *part = strtok_r(line, ";&|(){}`", &rest); part;
	     part = strtok_r(NULL, ";&|(){}`", &rest)) {
		size_t n = 0;

		for (char *w = strtok_r(part, " \t\r", &save); w && n < WORDS_MAX;
		     w = strtok_r(NULL, " \t\r", &save))
			if (n || (!strchr(w, '=') && !is_one_of(w, before)))
				words[n++] = w;
		words[n] = NULL;
		if (n && launcher_find(words, &at))
			return launcher_name(launcher_find(words, &at));
	}
	return NULL;
}

/* As a statement, not in a comment or a docstring: "mp.spawn(", "x = torch.multiprocessing.spawn(".
 */
static bool is_spawn(const char *line)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	size_t n = strspn(line, letters);
	const char *call = line + n;

	if (strncmp(call, " = ", 3) == 0) {
		line = call + 3;
		n = strspn(line, letters);
		call = line + n;
	}
	return *call == '(' && ((n >= 8 && strncmp(call - 8, "mp.spawn", 8) == 0) ||
				(n >= 21 && strncmp(call - 21, "multiprocessing.spawn", 21) == 0));
}

bool script_starts_ranks(char *const *command, char *ret_what, size_t size, const char **ret_option)
{
	const char *name, *by = NULL;
	bool is_python;
	CLEANUP(freep) char *text = read_script(command, &name, &is_python);
	char *rest = text, *line;
	unsigned n = 0;

	while (!by && (line = strsep(&rest, "\n"))) {
		line += strspn(line, " \t");
		n++;
		if (*line == '#')
			continue;
		if (!is_python)
			by = launcher_in(line);
		else if (is_spawn(line))
			by = "mp.spawn";
	}
	if (!by)
		return false;
	snprintf(ret_what, size, "%s:%u: %s", name, n, by);
	*ret_option = is_python ? "--procs 1" : "--launcher";
	return true;
}
