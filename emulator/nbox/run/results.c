/* See results.h. */
#include "nbox/run/results.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/host-facts.h"
#include "config/config.h"

static int make_dirs(char *path, struct err *err)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c != '/' && c != 0)
			continue;
		*p = 0;
		if (mkdir(path, 0777) < 0 && errno != EEXIST) {
			int r = errno;

			err_set(err, r, "%s: cannot be made: %s; choose another --out", path,
				strerror(r));
			*p = c;
			return -r;
		}
		*p = c;
		if (c == 0)
			return 0;
	}
}

/* A folder is made in @path and taken away: for file systems without O_TMPFILE. */
static int try_folder(const char *path)
{
	char name[PATH_MAX + 32];

	snprintf(name, sizeof(name), "%s/.nbox-XXXXXX", path);
	if (mkdtemp(name) && rmdir(name) == 0)
		return 0;
	return errno == ENOENT ? -EPERM
			       : -errno; /* ENOENT: /proc says so of a folder that is there */
}

/* Is @path a folder that nbox may write to? Tries it by a file without a name, which leaves nothing
 * behind: access() would say yes to root, even in /proc. Return: 0; negative errno. */
static int check_folder(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (access(path, W_OK | X_OK) < 0)
		return -errno;
	fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		return close(fd), 0;
	return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT
		       ? try_folder(path)
		       : -errno;
}

/* From @path, which is changed, to the folder that it is in. */
static const char *go_up(char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	while (n > 1 && path[n - 1] == '/')
		n--;
	path[n] = 0;
	return n ? path : strcpy(path, ".");
}

int results_check(const char *dir, struct err *err)
{
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s", dir ? dir : "nbox-out") >= (int)sizeof(path) - 64)
		return err_set(err, ENAMETOOLONG, "--out: the name is too long");
	while ((r = check_folder(path)) == -ENOENT && strcmp(path, ".") != 0)
		go_up(path);
	if (r < 0)
		return err_set(err, -r,
			       "%s: no results can be written there: %s: %s; choose another --out",
			       dir ? dir : "nbox-out", path, strerror(-r));
	return 0;
}

int results_check_file(const char *flag, const char *path, const char *dir, struct err *err)
{
	char folder[PATH_MAX];
	struct stat st;
	size_t n = dir ? strlen(dir) : 0;
	int r;

	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return err_set(err, ENAMETOOLONG, "%s: the name is too long", flag);
	if (stat(path, &st) == 0) {
		r = S_ISDIR(st.st_mode) ? -EISDIR : access(path, W_OK) < 0 ? -errno : 0;
	} else {
		while (n > 1 && dir[n - 1] == '/')
			n--;
		go_up(folder);
		r = strlen(folder) == n && dir && strncmp(folder, dir, n) == 0
			    ? 0
			    : check_folder(folder);
	}
	return r < 0 ? err_set(err, -r, "%s %s: cannot be written there: %s", flag, path,
			       strerror(-r))
		     : 0;
}

/* Refuses a folder with files that no run of nbox wrote, such as --out . beside a cluster file of
 * the name config.yaml, and with links to elsewhere. Files of a run that did not get as far as a
 * record may be overwritten. */
static int check_not_users(const struct results *r, struct err *err)
{
	static const char *const names[] = {"config.yaml", "command.txt", "versions.txt",
					    "host.json", "summary.json"};
	char path[PATH_MAX], first[sizeof(CONFIG_MARK)] = "";
	CLEANUP(closep) int fd = file_open(results_path(r, "config.yaml", path), NULL);
	bool is_ours = fd >= 0 && read(fd, first, sizeof(first) - 1) > 0 &&
		       strcmp(first, CONFIG_MARK) == 0;
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (lstat(results_path(r, names[i], path), &st) < 0 ||
		    (is_ours && S_ISREG(st.st_mode)))
			continue;
		return err_set(err, EEXIST,
			       "%s is there and is not of a run of nbox; choose another --out",
			       path);
	}
	return 0;
}

int results_open(struct results *res, const char *dir, struct err *err)
{
	char path[PATH_MAX];
	time_t now = time(NULL);
	struct tm tm;

	if (dir) {
		if (snprintf(res->dir, sizeof(res->dir), "%s", dir) >= (int)sizeof(res->dir) - 64)
			return err_set(err, ENAMETOOLONG, "--out: the name is too long");
	} else {
		char text[64];

		localtime_r(&now, &tm);
		strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
		snprintf(res->dir, sizeof(res->dir), "nbox-out/%s-%d", text, (int)getpid());
	}
	int r = make_dirs(res->dir, err);

	if (r < 0)
		return r;
	if (access(results_path(res, "record.nbox", path), F_OK) == 0)
		return err_set(err, EEXIST,
			       "%s holds the record of another run; choose another --out",
			       res->dir);
	return check_not_users(res, err);
}

char *results_path(const struct results *r, const char *name, char *buf)
{
	snprintf(buf, PATH_MAX, "%.*s/%s", PATH_MAX - 64, r->dir, name);
	return buf;
}

/* nbox's own words @lines, then the job's @command; NULL: there is none. */
static int write_lines(const struct results *res, const char *name, int n, char *const lines[],
		       char *const command[], struct err *err)
{
	char path[PATH_MAX];
	FILE *f = fopen(results_path(res, name, path), "w");
	int r;

	if (!f)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		/* others may read what lies there */
		if (strncmp(lines[i], "--token=", 8) == 0)
			fprintf(f, "--token=(a secret)\n");
		else if (i > 0 && strcmp(lines[i - 1], "--token") == 0)
			fprintf(f, "(a secret)\n");
		else
			fprintf(f, "%s\n", lines[i]);
	}
	if (command)
		fprintf(f, "--\n");
	for (; command && *command; command++)
		fprintf(f, "%s\n", *command);
	r = file_close(f);
	return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : 0;
}

static json_t *host_facts(void)
{
	struct host_facts h;

	host_facts_read(&h);
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "host", h.host, "kernel", h.kernel,
			 "machine", h.machine, "cpu", h.cpu, "cores", (json_int_t)h.cores,
			 "memory_bytes", (json_int_t)h.memory_bytes);
}

int results_describe(const struct results *res, int argc, char *const argv[], char *const command[],
		     struct err *err)
{
	char path[PATH_MAX], version[64];
	char *versions[] = {version};
	json_t *facts = host_facts();
	int failed, r;

	snprintf(version, sizeof(version), "nbox %s", NBOX_VERSION);
	r = write_lines(res, "command.txt", argc, argv, command, err);
	if (r == 0)
		r = write_lines(res, "versions.txt", 1, versions, NULL, err);
	failed = !facts ||
		 json_dump_file(facts, results_path(res, "host.json", path), JSON_INDENT(1));
	json_decref(facts);
	if (r == 0 && failed)
		r = err_set(err, EIO, "%s: cannot be written", path);
	return r;
}
