/* See program.h. */
#include "nbox/run/program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/run/launcher-options.h"

#define SCRIPT_MAX (1 << 16)
#define WORDS_MAX 64
#define FIRST_LINE_MAX 256 /* the kernel reads no more of a first line */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The file that execvp() would run for @name. Return: @buf, or NULL. */
static const char *find(const char *name, char buf[PATH_MAX])
{
	const char *dir = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(buf, PATH_MAX, "%s", name);
		return is_file(buf) && access(buf, X_OK) == 0 ? buf : NULL;
	}
	if (!dir)
		dir = "/bin:/usr/bin"; /* as glibc has it */
	for (size_t len; *dir; dir += len + (dir[len] == ':')) {
		len = strcspn(dir, ":");
		if (snprintf(buf, PATH_MAX, "%.*s/%s", (int)len, len ? dir : ".", name) <
			    PATH_MAX &&
		    is_file(buf) && access(buf, X_OK) == 0)
			return buf;
	}
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "#!/usr/bin/env -S python3 -u" runs python3. Return: that word of @rest; NULL: there is none, or
 * none that is known for sure: an option may take the next word, and -S knows quotes and variables.
 */
static char *program_of_env(char *rest)
{
	char *save = NULL, *word = strtok_r(rest, " \t", &save);

	while (word && (strcmp(word, "-S") == 0 || strcmp(word, "-i") == 0 ||
			(word[0] != '-' && strchr(word, '='))))
		word = strtok_r(NULL, " \t", &save);
	return word && word[0] != '-' && !strpbrk(word, "$'\"\\") ? word : NULL;
}

/* The interpreter that the first line of the script @path names. @name: as the user typed it. */
static int check_interpreter(const char *name, const char *path, struct err *err)
{
	char line[FIRST_LINE_MAX] = "", found[PATH_MAX], *program, *rest;
	FILE *f = fopen(path, "re");
	bool is_script = f && fgets(line, sizeof(line), f) && strncmp(line, "#!", 2) == 0;

	if (f)
		fclose(f);
	if (!is_script)
		return 0; /* a binary, or what execvp() gives to the shell */
	line[strcspn(line, "\n")] = 0;
	if (strchr(line, '\r'))
		return err_set(err, ENOENT,
			       "%s: its first line ends with a carriage return, as files from "
			       "Windows have "
			       "it, so that no interpreter is found: sed -i 's/\\r$//' %s",
			       name, name);
	program = line + 2 + strspn(line + 2, " \t");
	rest = program + strcspn(program, " \t");
	if (*rest)
		*rest++ = 0;
	if (!is_file(program) || access(program, X_OK) != 0)
		return err_set(err, ENOENT,
			       "%s: its first line names the interpreter '%s', which is not here, "
			       "or no program",
			       name, program);
	if (strcmp(base_name(program), "env") != 0)
		return 0;
	rest = program_of_env(rest);
	return !rest || find(rest, found) ? 0
					  : err_set(err, ENOENT,
						    "%s: its first line names the interpreter "
						    "'%s', which is not on the PATH",
						    name, rest);
}

/* The word of "python3 -u train.py ..." that is a script; NULL: there is none, or none that is
 * known for sure. */
static const char *python_script(char *const *command)
{
	if (strncmp(base_name(command[0]), "python", 6) != 0)
		return NULL;
	for (command++; *command && (*command)[0] == '-'; command++)
		if ((*command)[1] != '-' && strpbrk(*command, "cm")) /* also -mMODULE, -um */
			return NULL;
	return *command;
}

/* The same of a launcher of Python scripts, unless it is told to start a module or a program. */
static const char *launched_script(const struct launch_line *line)
{
	static const char *const others[] = {"-m", "--module", "--no-python", "--no_python"};
	bool is_python = line->kind == LAUNCH_TORCHRUN || line->kind == LAUNCH_ACCELERATE ||
			 line->kind == LAUNCH_DEEPSPEED;

	for (size_t i = line->options_at; i < line->script_at; i++)
		for (size_t k = 0; k < ARRAY_SIZE(others); k++)
			if (strcmp(line->words[i], others[k]) == 0)
				return NULL;
	return is_python && line->script_at < line->n_words ? line->words[line->script_at] : NULL;
}

int program_check(char *const *command, const struct launch_line *line, struct err *err)
{
	const char *name = command[0], *script = line->kind == LAUNCH_NONE ? python_script(command)
									   : launched_script(line);
	char path[PATH_MAX];
	size_t len;
	int r;

	if (!find(name, path)) {
		if (is_file(name) && access(name, X_OK) != 0)
			return err_set(
				err, EACCES,
				"%s: is there, but cannot be executed: say what runs it, such as "
				"'python3 %s', or make it a program by chmod +x",
				name, name);
		return err_set(err, ENOENT, "%s: not found here, or no program",
			       name[0] ? name : "''");
	}
	r = check_interpreter(name, path, err);
	if (r < 0)
		return r;
	len = script ? strlen(script) : 0;
	if (len > 3 && strcmp(script + len - 3, ".py") == 0 && access(script, R_OK) != 0)
		return err_set(err, errno, "%s: the script %s: %s", base_name(name), script,
			       strerror(errno));
	return 0;
}

/* --- scripts that start ranks ---------------------------------------------------------------- */

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list && strcmp(word, *list) != 0)
		list++;
	return *list;
}

static bool is_shell(const char *word)
{
	return is_one_of(base_name(word),
			 (const char *const[]){"sh", "bash", "dash", "zsh", "ksh", NULL});
}

/* The text of the script that @command runs, the caller's. *ret_name: as the user calls it. NULL:
 * it runs none, or one in another language. */
static char *read_script(char *const *command, const char **ret_name, bool *ret_is_python)
{
	const char *script = python_script(command);
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
		script = find(command[0], path);
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

bool program_starts_ranks(char *const *command, char *ret_what, size_t size,
			  const char **ret_option)
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
