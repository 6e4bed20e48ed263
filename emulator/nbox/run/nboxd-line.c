/* See nboxd-line.h. */
#include "nbox/run/nboxd-line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "nbox/run/env.h"

extern char **environ;

/* nboxd's environment: ours without the variables of nbox, since the effective
 * configuration comes to it as a file (and what is unknown was said here), but for
 * those that no file has; and with the token. */
static int set_nboxd_env(void *token)
{
	static const char *const kept[] = {"NBOX_DEBUG", "NBOX_DEBUG_FILE", "NBOX_MODEL_PATH"};
	char name[128];

	for (size_t i = 0; environ[i];) {
		bool is_kept = strncmp(environ[i], "NBOX_", 5) != 0;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[i], "="), environ[i]);
		for (size_t k = 0; k < ARRAY_SIZE(kept); k++)
			is_kept |= strcmp(name, kept[k]) == 0;
		if (is_kept || unsetenv(name) < 0)
			i++;
	}
	return env_set("NBOX_TOKEN", "%s", (const char *)token);
}

static int write_config(const struct run *run, const struct results *res, char *path,
			struct err *err)
{
	FILE *f = fopen(results_path(res, "config.yaml", path), "w");
	int r, closed;

	if (!f)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	r = config_write_run(run->config, res->dir, f);
	closed = file_close(f);
	r = r < 0 ? r : closed;
	return r < 0 ? err_set(err, -r, "%s: cannot be written: %s", path, strerror(-r)) : 0;
}

int nboxd_line_start(const struct run *run, const struct results *res, const char *token,
		     struct nboxd_proc *ret, struct err *err)
{
	char *program = getenv("NBOX_NBOXD"); /* tests run it under valgrind */
	char config[PATH_MAX];
	unsigned int number = 0;
	char addr[256];
	int r = write_config(run, res, config, err);

	if (r < 0)
		return r;
	/* Each run has an address of its own unless the user chose one. It is abstract: nothing is
	 * left of it when nboxd is killed. It has a random number, since pids of two containers may
	 * be equal. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (unsigned int)clock_now_ns();
	char *argv[] = {program ? program : (char *)(uintptr_t)run->paths.nboxd,
			(char *)"--config",
			config,
			(char *)"--out",
			(char *)(uintptr_t)res->dir,
			(char *)"--store",
			(char *)(config_is_set(run->config, CONFIG_STORE)
					 ? run->config->values[CONFIG_STORE].items[0].text
					 : "127.0.0.1:0"),
			NULL,
			NULL,
			NULL};

	snprintf(addr, sizeof(addr), "shm:@nbox-%d-%08x", (int)getpid(), number);
	if (!config_is_set(run->config, CONFIG_ADDR) &&
	    strncmp(run->config->addr, "shm:", 4) == 0) {
		argv[7] = (char *)"--addr";
		argv[8] = addr;
	} else if (strncmp(run->config->addr, CONFIG_ADDR_AUTO, strlen(CONFIG_ADDR_AUTO)) == 0) {
		argv[7] = (char *)"--addr"; /* the file does not say it */
		argv[8] = (char *)(uintptr_t)run->config->addr;
	}
	return nboxd_start(ret, argv, &(struct job_env){set_nboxd_env, (char *)(uintptr_t)token},
			   err);
}
