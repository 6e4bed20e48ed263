/* nboxd: plays every rank of a virtual cluster that has no process. Options: see
 * config/; the loop: see server.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon/background.h"
#include "daemon/server.h"
#include "daemon/summary.h"

extern char **environ;

static const char *const own_flags[] = {"--config", "--ready-fd", "--ended-fd", "--background", "--once", "--check", "--help",
					"--version"};

struct args {
	const char *file;
	int ready_fd, ended_fd; /* ended_fd -1: none */
	bool check_only, background, once;
};

static void usage(FILE *f)
{
	fputs("Usage: nboxd [--config FILE] [OPTION VALUE]...\n"
	      "Plays the ranks of a virtual cluster that have no process. Prints one line,\n"
	      "\"nboxd ready ADDRESS [store HOST:PORT] [also ADDRESS...]\", when it listens; SIGTERM\n"
	      "or SIGINT end it.\n\n"
	      "  --config FILE                cluster file (YAML)\n"
	      "  \x20                            NBOX_CONFIG\n"
	      "  --ready-fd N                 the ready line goes to this descriptor\n"
	      "  --ended-fd N                 a socket at which is told whose process has ended (ended.h)\n"
	      "  --background                 return when it listens; it goes on by itself\n"
	      "  --once                       end when the last worker has left\n"
	      "  --check                      check the options, print the effective configuration, end\n"
	      "  --help, --version\n\n"
	      "Each option below may also be given as the variable or the key of the cluster file that\n"
	      "its second line names. A flag goes before a variable, a variable before the file.\n"
	      "Numbers need units: 5us, 400Gbps, 50GB/s, 4MiB. Exit code 2: an option, a variable, the\n"
	      "file, the model or a what-if is wrong, and nothing was started; 1: it could not run.\n\n", f);
	config_help(f, NULL);
}

/* Return: 0; 1: answered, end; -EINVAL with the sentence. */
static int parse_args(struct config *c, int argc, char **argv, struct args *ret, struct err *err)
{
	int i = 1, r;

	while (i < argc) {
		const char *word = argv[i];

		r = config_arg(c, argc, argv, &i, err);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
			usage(stdout);
			return 1;
		}
		if (strcmp(word, "--version") == 0) {
			printf("nboxd %s\n", NBOX_VERSION);
			return 1;
		}
		bool *flag = strcmp(word, "--check") == 0 ? &ret->check_only :
			     strcmp(word, "--background") == 0 ? &ret->background :
			     strcmp(word, "--once") == 0 ? &ret->once : NULL;

		if (flag) {
			*flag = true;
			i++;
			continue;
		}
		if (strcmp(word, "--config") == 0 || strcmp(word, "--ready-fd") == 0 ||
		    strcmp(word, "--ended-fd") == 0) {
			int *fd = word[2] == 'r' ? &ret->ready_fd : &ret->ended_fd;
			char *end;

			if (i + 1 >= argc || !strncmp(argv[i + 1], "--", 2))
				return err_set(err, EINVAL, "%s: needs a value", word);
			if (word[2] == 'c') {
				ret->file = argv[i + 1];
			} else {
				*fd = (int)strtol(argv[i + 1], &end, 10);
				if (*end || end == argv[i + 1] || *fd < 0)
					return err_set(err, EINVAL, "%s: '%s' is no descriptor", word,
						       argv[i + 1]);
			}
			i += 2;
			continue;
		}
		if (word[0] != '-')
			return err_set(err, EINVAL, "unexpected word '%.64s'; see --help", word);
		return config_unknown_flag(word, own_flags, ARRAY_SIZE(own_flags), err);
	}
	return 0;
}

static int configure(struct config *c, int argc, char **argv, struct args *args, struct err *err)
{
	int r = parse_args(c, argc, argv, args, err);

	if (r != 0)
		return r;
	if (!args->file && getenv("NBOX_CONFIG") && getenv("NBOX_CONFIG")[0])
		args->file = getenv("NBOX_CONFIG");
	if (args->file && (r = config_file(c, args->file, err)) < 0)
		return r;
	if ((r = config_environment(c, environ, err)) < 0)
		return r;
	r = config_finish(c, err);
	return r < 0 ? r : server_check_model(c, err);
}

static int say_ready(const struct server *s, int fd)
{
	const char *store = server_store_addr(s);
	char more[1024], line[1600];
	int n = snprintf(line, sizeof(line), "nboxd ready %s%s%s%s%s\n", server_addr(s),
			 store ? " store " : "", store ? store : "",
			 s->n_listening > 1 ? " also" : "", server_more_addrs(s, more, sizeof(more)));

	return write(fd, line, (size_t)n) == n ? 0 : -errno;
}

static void config_freep(struct config **c)
{
	config_free(*c);
}

static void server_closep(struct server **s)
{
	server_close(*s);
}

int main(int argc, char **argv)
{
	CLEANUP(config_freep) struct config *c = NULL;
	CLEANUP(server_closep) struct server *s = NULL;
	struct args args = {.ready_fd = STDOUT_FILENO, .ended_fd = -1};
	struct err err = {""};
	int r, code = 0;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* ulimit -f: a write fails and is told, nboxd lives */
	log_open();
	r = config_new(&c);
	if (r == 0)
		r = configure(c, argc, argv, &args, &err);
	if (r > 0)
		return 0;
	if (r < 0) {
		fprintf(stderr, "nboxd: %s\n", err.text[0] ? err.text : strerror(-r));
		return 2;
	}
	if (config_is_set(c, CONFIG_LOG))
		log_set_level((enum log_level)c->log_level);
	if (args.check_only)
		return config_write(c, stdout) < 0;
	if (args.background) {
		r = background_start(&args.ready_fd, &code, &err);
		if (r > 0)
			return code;
	}
	if (r == 0)
		r = server_open(c, &s, &err);
	if (r == 0 && args.once)
		server_end_when_left(s);
	if (r == 0 && args.ended_fd >= 0 && ended_watch(s, args.ended_fd) < 0)
		r = err_set(&err, ENOMEM, "out of memory");
	if (r == 0 && say_ready(s, args.ready_fd) < 0)
		r = err_set(&err, errno, "cannot write the ready line: %s", strerror(errno));
	if (r == 0 && args.background)
		close(args.ready_fd);
	if (r == 0)
		r = server_run(s, &err);
	if (r == 0 && args.once && c->out) {
		s = server_close(s); /* the record is complete then */
		r = summary_write(c->out, &err);
	}
	if (r < 0) {
		fprintf(stderr, "nboxd: %s\n", err.text[0] ? err.text : strerror(-r));
		return 1;
	}
	return 0;
}
