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
	      "or SIGINT end it.\n\n",
	      f);
	option_help(COMMAND_NBOXD, 28, f);
	fputs("\n"
	      "Each option below may also be given as the variable or the key of the cluster file that\n"
	      "its second line names. A flag goes before a variable, a variable before the file.\n"
	      "Numbers need units: 5us, 400Gbps, 50GB/s, 4MiB. Exit code 2: an option, a variable, the\n"
	      "file, the model or a what-if is wrong, and nothing was started; 1: it could not run.\n\n",
	      f);
	config_help(COMMAND_NBOXD, f, NULL);
}

static int take(struct args *ret, const struct option_word *w, struct err *err)
{
	char *end;
	long n;

	if (w->id == FLAG_CONFIG)
		ret->file = w->value;
	else if (w->id == FLAG_CHECK)
		ret->check_only = true;
	else if (w->id == FLAG_ONCE)
		ret->once = true;
	if (!w->value || w->id == FLAG_CONFIG)
		return 0;
	n = strtol(w->value, &end, 10);
	if (*end || end == w->value || n < 0 || n > INT32_MAX)
		return err_set(err, EINVAL, "%s: '%s' is no %s", w->name, w->value,
			       strstr(w->name, "-fd") ? "descriptor" : "number");
	if (w->id == FLAG_JOIN) {
		ret->is_joining = ret->once = true;
		ret->join.rank = (int32_t)n;
	} else if (w->id == FLAG_RANKS) {
		ret->join.n_ranks = (uint32_t)n;
	} else if (w->id == FLAG_LOCAL) {
		ret->join.n_local = (uint32_t)n;
	} else {
		*(w->id == FLAG_READY_FD ? &ret->ready_fd : &ret->ended_fd) = (int)n;
	}
	return 0;
}

/* Return: 0; 1: answered, end; -EINVAL with the sentence. */
static int parse_args(struct config *c, int argc, char **argv, struct args *ret, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_NBOXD, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL, "unexpected word '%.64s'; see --help", argv[i]);
		if (r == 0 && w.id == FLAG_HELP) {
			usage(stdout);
			return 1;
		}
		if (r == 0 && w.id == FLAG_VERSION) {
			printf("nboxd %s\n", NBOX_VERSION);
			return 1;
		}
		if (r == 0)
			r = w.id < CONFIG_OPTIONS ? config_take(c, &w, err) : take(ret, &w, err);
	}
	return r;
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
		       store ? store : "", s->listen.n > 1 ? " also" : "",
		       listen_more_addrs(&s->listen, more, sizeof(more))) < 0
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
	if (args->ended_fd >= 0 &&
	    exited_watch(&s->exited, &s->loop, &s->players, args->ended_fd) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (args->is_joining)
		r = join_open(&args->join, s->config, server_addr(s), server_store_addr(s),
			      &s->door, &s->loop, err);
	else if ((r = say_ready(s, args->ready_fd)) < 0)
		err_set(err, -r, "cannot write the ready line: %s", strerror(-r));
	if (r == 0)
		server_run(s);
	return r;
}

int main(int argc, char **argv)
{
	CLEANUP(config_freep) struct config *c = NULL;
	CLEANUP(server_closep) struct server *s = NULL;
	struct args args = {.ready_fd = STDOUT_FILENO, .ended_fd = -1};
	char network[512] = "";
	struct err err = {""};
	int r;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* ulimit -f: a write fails with an error, and nboxd lives */
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
		r = summary_write(c, network, args.is_joining, &err);
		if (r == SUMMARY_UNMET) {
			fprintf(stderr,
				"nboxd: the run was not as expected, and %s/summary.json says where%s\n",
				c->out, args.is_joining ? "; the job's exit code does not" : "");
			return EXPECT_EXIT_CODE_UNMET;
		}
	}
	if (r < 0)
		fprintf(stderr, "nboxd: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0;
}
