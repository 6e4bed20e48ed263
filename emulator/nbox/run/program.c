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

#define FIRST_LINE_MAX 256 /* the kernel reads no more of a first line */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

const char *program_find(const char *name, char buf[PATH_MAX])
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
	if (strcmp(basename(program), "env") != 0)
		return 0;
	rest = program_of_env(rest);
	return !rest || program_find(rest, found)
		       ? 0
		       : err_set(err, ENOENT,
				 "%s: its first line names the interpreter "
				 "'%s', which is not on the PATH",
				 name, rest);
}

const char *program_python_script(char *const *command)
{
	if (strncmp(basename(command[0]), "python", 6) != 0)
		return NULL;
	for (command++; *command && (*command)[0] == '-'; command++)
		if ((*command)[1] != '-' && strpbrk(*command, "cm")) /* also -mMODULE, -um */
			return NULL;
	return *command;
}

/* The Python script that a launcher starts; NULL where it is told to start a module or a program.
 */
static const char *launcher_script(const struct launcher_line *line)
{
	static const char *const others[] = {"-m", "--module", "--no-python", "--no_python"};
	bool is_python = line->kind == LAUNCHER_TORCHRUN || line->kind == LAUNCHER_ACCELERATE ||
			 line->kind == LAUNCHER_DEEPSPEED;

	for (size_t i = line->options_at; i < line->script_at; i++)
		for (size_t k = 0; k < ARRAY_SIZE(others); k++)
			if (strcmp(line->words[i], others[k]) == 0)
				return NULL;
	return is_python && line->script_at < line->n_words ? line->words[line->script_at] : NULL;
}

int program_check(char *const *command, const struct launcher_line *line, struct err *err)
{
	const char *name = command[0], *script = line->kind == LAUNCHER_NONE
							 ? program_python_script(command)
							 : launcher_script(line);
	char path[PATH_MAX];
	size_t len;
	int r;

	if (!program_find(name, path)) {
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
		return err_set(err, errno, "%s: the script %s: %s", basename(name), script,
			       strerror(errno));
	return 0;
}
