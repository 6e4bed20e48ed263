/* See results.h. */
#include "nboxd/job/results.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <event2/event.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/host-facts.h"

static int make_dirs(const char *dir, struct err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path) - 32)
		return err_set(err, ENAMETOOLONG, "out: the name is too long");
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return err_set(err, errno, "out: cannot make %s: %s", path,
				       strerror(errno));
		*p = '/';
	}
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "out: cannot make %s: %s", path, strerror(errno));
	return 0;
}

/* NULL with the sentence; *ret_exists: it was there. */
static FILE *create(const char *dir, const char *name, int *ret_exists, struct err *err)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 32, dir, name);
	*ret_exists = 0;
	f = fopen(path, "wxe");
	if (!f && errno == EEXIST)
		*ret_exists = 1;
	else if (!f)
		err_set(err, errno, "out: cannot write %s: %s", path, strerror(errno));
	return f;
}

/* @r: of what was done before; a negative errno stays. */
static int close_file(FILE *f, int r, const char *name, struct err *err)
{
	int closed = file_close(f);

	r = r < 0 ? r : closed;
	return r < 0 ? err_set(err, -r, "out: cannot write %s: %s", name, strerror(-r)) : 0;
}

static int write_config(const struct config *c, struct err *err)
{
	int exists, r;
	FILE *f = create(c->out, "config.yaml", &exists, err);

	if (!f)
		return exists ? 0 : -EIO;
	r = config_write_run(c, c->out, f);
	return close_file(f, r, "config.yaml", err);
}

static int write_facts(const struct config *c, struct err *err)
{
	struct host_facts h;
	int exists, r;
	json_t *j;
	FILE *f = create(c->out, "versions.txt", &exists, err);

	if (!f && !exists)
		return -EIO;
	if (f) {
		fprintf(f, "nbox %s\nlibevent %s\n", NBOX_VERSION, event_get_version());
		if ((r = close_file(f, 0, "versions.txt", err)) < 0)
			return r;
	}
	f = create(c->out, "host.json", &exists, err);
	if (!f)
		return exists ? 0 : -EIO;
	host_facts_read(&h);
	j = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "host", h.host, "kernel", h.kernel,
		      "machine", h.machine, "cpu", h.cpu, "cores", (json_int_t)h.cores,
		      "memory_bytes", (json_int_t)h.memory_bytes);
	r = j && json_dumpf(j, f, JSON_INDENT(1)) == 0 ? 0 : -EIO;
	json_decref(j);
	return close_file(f, r, "host.json", err);
}

int results_open(const struct config *c, uint64_t start_ns, struct record_writer **ret,
		 struct err *err)
{
	struct record_header h = {
		.world_size = c->world,
		.n_nodes = c->topology.n_nodes,
		.gpus_per_node = c->topology.gpus_per_node,
		.n_real = (uint32_t)c->n_real,
		.exchange = c->nccl == NCCL_FULL ? c->traffic : c->exchange,
		.nccl = c->nccl,
		.data = c->data,
		.seed = c->seed,
		.start_ns = start_ns,
	};
	char path[PATH_MAX];
	struct timespec now;
	int r = make_dirs(c->out, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%.*s/record.nbox", PATH_MAX - 32, c->out);
	if (access(path, F_OK) == 0)
		return err_set(err, EEXIST,
			       "out: %s holds the record of another run; choose another directory",
			       c->out);
	clock_gettime(CLOCK_REALTIME, &now);
	h.start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	config_model(c, h.model, sizeof(h.model));
	for (size_t i = 0, used = 0; i < c->n_layouts && used < sizeof(h.layout); i++)
		used += (size_t)snprintf(h.layout + used, sizeof(h.layout) - used, "%s%s",
					 i ? ";" : "", c->values[CONFIG_LAYOUT].items[i].text);
	for (size_t i = 0, used = 0; i < c->n_data_for && used < sizeof(h.data_for); i++)
		used += (size_t)snprintf(h.data_for + used, sizeof(h.data_for) - used, "%s%s",
					 i ? ";" : "", c->values[CONFIG_DATA_FOR].items[i].text);
	if ((r = write_config(c, err)) < 0 || (r = write_facts(c, err)) < 0)
		return r;
	return record_create(path, &h, ret, err);
}

void results_note_command(const struct config *c, uint32_t pid)
{
	char path[64];
	struct err err;
	FILE *from, *to = NULL;
	int exists, byte, n = 0;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	from = fopen(path, "re");
	while (from && (byte = getc(from)) != EOF) {
		if (n++ == 0) {
			to = create(c->out, "command.txt", &exists, &err);
			if (!to)
				break;
			fputs("--\n", to); /* as nbox run: all behind it is the job's */
		}
		putc(byte ? byte : '\n', to);
	}
	if (from)
		fclose(from);
	if (to)
		fclose(to);
}

int results_append(const struct config *c, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd, r;

	snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 32, c->out, name);
	/* a pipe or a link of that name is not nboxd's, and would let it wait, or write elsewhere
	 */
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd < 0)
		return -errno;
	r = dprintf(fd, "%s\n", text) < 0 ? -errno : 0;
	return close(fd) < 0 && r == 0 ? -errno : r;
}
