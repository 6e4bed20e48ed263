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
#include "nboxd/job/join.h"
#include "nboxd/job/summary.h"
#include "nboxd/server.h"

extern char **environ;

static const char *const own_flags[] = {"--config", "--ready-fd", "--ended-fd", "--once",
					"--join",   "--ranks",    "--local",    "--check",
					"--help",   "--version"};

struct args {
	const char *file;
	int ready_fd, ended_fd; /* ended_fd -1: none */
	bool check_only, once, is_joining;
	struct join join;
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
	      "  --once                       end when the last worker has left\n"
	      "  --join RANK, --ranks N, --local N\n"
	      "  \x20                            libnbox.so's: join the nboxd of this job, or become it\n"
	      "  --check                      check the options, print the effective configuration, end\n"
	      "  --help, --version\n\n"
	      "Each option below may also be given as the variable or the key of the cluster file that\n"
	      "its second line names. A flag goes before a variable, a variable before the file.\n"
	      "Numbers need units: 5us, 400Gbps, 50GB/s, 4MiB. Exit code 2: an option, a variable, the\n"
	      "file, the model or a what-if is wrong, and nothing was started; 1: it could not run.\n\n",
	      f);
	config_help(f, NULL);
}

static bool word_is_one_of(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0)
			return true;
	return false;
}

static int take_value(struct args *ret, const char *flag, const char *value, struct err *err)
{
	char *end;
	long n;

	if (strcmp(flag, "--config") == 0) {
		ret->file = value;
		return 0;
	}
	n = strtol(value, &end, 10);
	if (*end || end == value || n < 0 || n > INT32_MAX)
		return err_set(err, EINVAL, "%s: '%s' is no %s", flag, value,
			       strstr(flag, "-fd") ? "descriptor" : "number");
	if (strcmp(flag, "--join") == 0) {
		ret->is_joining = ret->once = true;
		ret->join.rank = (int32_t)n;
	} else if (strcmp(flag, "--ranks") == 0) {
		ret->join.n_ranks = (uint32_t)n;
	} else if (strcmp(flag, "--local") == 0) {
		ret->join.n_local = (uint32_t)n;
	} else {
		*(strcmp(flag, "--ready-fd") == 0 ? &ret->ready_fd : &ret->ended_fd) = (int)n;
	}
	return 0;
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
		if (strcmp(word, "--check") == 0 || strcmp(word, "--once") == 0) {
			*(word[2] == 'c' ? &ret->check_only : &ret->once) = true;
			i++;
			continue;
		}
		if (word_is_one_of(word, own_flags, ARRAY_SIZE(own_flags))) {
			if (i + 1 >= argc || !strncmp(argv[i + 1], "--", 2))
				return err_set(err, EINVAL, "%s: needs a value", word);
			r = take_value(ret, word, argv[i + 1], err);
			if (r < 0)
				return r;
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
	if (!args->file && args->is_joining && access(JOIN_FILE, F_OK) == 0)
		args->file = JOIN_FILE;
	if (args->file && (r = config_file(c, args->file, err)) < 0)
		return r;
	if ((r = config_environment(c, environ, err)) < 0)
		return r;
	if (args->is_joining && join_configure(&args->join, c) < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = config_finish(c, err);
	if (r == 0 && args->is_joining)
		r = join_check(&args->join, c, err);
	return r < 0 ? r : server_check(c, err);
}

static int say_ready(const struct server *s, int fd)
{
	const char *store = server_store_addr(s);
	char more[1024];

	return dprintf(fd, "nboxd ready %s%s%s%s%s\n", server_addr(s), store ? " store " : "",
		       store ? store : "", s->n_listening > 1 ? " also" : "",
		       server_more_addrs(s, more, sizeof(more))) < 0
		       ? -errno
		       : 0;
}

static void config_freep(struct config **c)
{
	config_free(*c);
}

static void server_closep(struct server **s)
{
	server_close(*s);
}

/* libnbox.so takes the sentence from stdout, and says it at the job's first NCCL call. */
static int fail(const struct args *args, int r, const struct err *err, int code)
{
	const char *text = err->text[0] ? err->text : strerror(-r);

	if (args->is_joining)
		printf("%s", text);
	else
		fprintf(stderr, "nboxd: %s\n", text);
	return code;
}

/* From the open server to its end. Return: 0; negative errno with the sentence. */
static int serve(struct server *s, const struct args *args, struct err *err)
{
	int r = 0;

	if (args->once)
		server_end_when_left(s);
	if (args->ended_fd >= 0 && ended_watch(s, args->ended_fd) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (args->is_joining)
		r = join_open(&args->join, s, err);
	else if ((r = say_ready(s, args->ready_fd)) < 0)
		err_set(err, -r, "cannot write the ready line: %s", strerror(-r));
	return r == 0 ? server_run(s, err) : r;
}

int main(int argc, char **argv)
{
	CLEANUP(config_freep) struct config *c = NULL;
	CLEANUP(server_closep) struct server *s = NULL;
	struct args args = {.ready_fd = STDOUT_FILENO, .ended_fd = -1};
	char network[320] = "";
	struct err err = {""};
	int r;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* ulimit -f: a write fails and is told, nboxd lives */
	log_open();
	r = config_new(&c);
	if (r == 0)
		r = configure(c, argc, argv, &args, &err);
	if (r > 0)
		return 0;
	if (r < 0)
		return fail(&args, r, &err, 2);
	if (config_is_set(c, CONFIG_LOG))
		log_set_level((enum log_level)c->log_level);
	if (args.check_only)
		return config_write(c, stdout) < 0;
	if (args.is_joining) {
		r = join_run(&args.join, c, &err);
		if (r <= 0)
			return r < 0 ? fail(&args, r, &err, 1) : 0;
	}
	r = server_open(c, &s, &err);
	if (r < 0 && args.is_joining) {
		door_refuse(args.join.door, err.text);
		return 1;
	}
	if (r == 0)
		r = serve(s, &args, &err);
	if (r == 0 && args.once && c->out) {
		server_network(s, network, sizeof(network));
		if (args.is_joining)
			server_hold_leaving(s);
		s = server_close(s); /* the record is complete then */
		r = summary_write(c->out, network, args.is_joining, &err);
	}
	if (r < 0)
		fprintf(stderr, "nboxd: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0;
}
