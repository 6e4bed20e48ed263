/* nbox status: connects to a running nboxd as a client and prints its answer: as a table for
 * people, as JSON for programs. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/plain.h"
#include "config/addr-file.h"
#include "links/endpoint.h"
#include "nbox/commands.h"
#include "nbox/report/live-run.h"
#include "nbox/report/runs.h"
#include "nbox/status-text.h"

#define ANSWER_MS 10000

struct client {
	int state; /* 0 waits for the welcome, 1 for the status, 2 done, -1 failed */
	struct link *link;
	char *json; /* owned */
	struct err err;
};

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner, (void)l, (void)h, (void)ret_body;
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct client *c = owner;
	struct wire_hdr ask;

	if (h->type != WIRE_STATUS && wire_body_check(h, body, &c->err) < 0) {
		c->state = -1; /* another user may have written DIR, or listen at its address */
	} else if (h->type == WIRE_ERROR) {
		err_set(&c->err, EPROTO, "%s", ((const struct wire_text *)body)->text);
		c->state = -1;
	} else if (h->type == WIRE_WELCOME && c->state == 0) {
		wire_hdr_init(&ask, WIRE_STATUS, 0);
		c->state = 1;
		return link_send_copy(l, &ask, NULL);
	} else if (h->type == WIRE_STATUS && c->state == 1) {
		c->json = strndup(body ? body : "", h->body_bytes);
		c->state = 2;
	}
	return 0;
}

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	(void)owner, (void)l, (void)cookie;
}

static void on_closed(void *owner, struct link *l, int r, const char *why)
{
	struct client *c = owner;

	(void)l;
	if (c->state == 2 || c->state == -1)
		return;
	err_set(&c->err, r ? -r : EPIPE, "nboxd closed the link: %s", why);
	c->state = -1;
}

static const struct link_events events = {on_header, on_frame, on_sent, on_closed};

static int ask(struct client *c, const char *addr, const char *token)
{
	uint64_t until = clock_now_ns() + ANSWER_MS * NS_PER_MS;
	struct wire_hello hello = {.role = 1, .pid = (uint32_t)getpid()};
	struct wire_hdr h;
	int r;

	r = link_connect(addr, ANSWER_MS, &events, c, &c->link, &c->err);
	if (r < 0)
		return r;
	strncpy((char *)hello.token, token ? token : "", sizeof(hello.token));
	hello.now_ns = clock_now_ns();
	gethostname(hello.host, sizeof(hello.host) - 1);
	wire_hdr_init(&h, WIRE_HELLO, sizeof(hello));
	r = link_send_copy(c->link, &h, &hello);
	while (r >= 0 && c->state >= 0 && c->state < 2) {
		struct pollfd p = {.fd = link_fd(c->link), .events = link_poll_events(c->link)};

		if (clock_now_ns() > until)
			return err_set(&c->err, ETIMEDOUT, "nboxd at %s did not answer within %d s",
				       addr, ANSWER_MS / 1000);
		r = link_progress(c->link);
		if (r == 0 && link_arm(c->link))
			poll(&p, 1, 50);
	}
	return c->state == 2 ? 0 : -EPROTO;
}

static void client_deinit(struct client *c)
{
	c->link = link_free(c->link);
	free(c->json);
	c->json = NULL;
	c->state = 0;
}

struct args {
	const char *addr, *token, *dir;
	bool is_json;
};

static void usage(FILE *to)
{
	fputs("usage: nbox status [--json] [DIR]\n"
	      "       nbox status [--json] --addr shm:PATH|tcp:HOST:PORT|rdma:HOST:PORT [--token TOKEN]\n\n"
	      "Asks a running nboxd who waits for what. DIR is the results directory of its run, or its name; without one, NBOX_ADDR and\n"
	      "NBOX_TOKEN count, else the newest run under " LIVE_RUN_TOP
	      "/ that is under way. A table on a terminal; JSON\n"
	      "with --json, or where the output goes elsewhere.\n",
	      to);
}

/* Return: 0; 1 help was given; -EINVAL with the sentence. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_STATUS, argc, argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE && a->dir)
			return err_set(err, EINVAL, "one run at a time: '%s' and '%s'", a->dir,
				       argv[i]);
		if (r == OPTION_NONE) {
			a->dir = argv[i++];
			r = 0;
			continue;
		}
		if (w.id == FLAG_HELP) {
			usage(stdout);
			return 1;
		}
		if (w.id == FLAG_AS_JSON)
			a->is_json = true;
		else
			*(w.id == FLAG_ADDR ? &a->addr : &a->token) = w.value;
	}
	return a->dir && a->addr ? err_set(err, EINVAL, "either a directory or --addr") : 0;
}

static int ask_run(struct client *c, const char *dir, struct args *a)
{
	struct addr_file f;
	int r = addr_file_read(dir, &f, &c->err);

	if (r == -ENOENT)
		return err_set(
			&c->err, ENOENT,
			"no run is under way in %s: there is no %s (`nbox report %s` shows one that is over)",
			dir, ADDR_FILE_NAME, dir);
	if (r < 0)
		return r;
	r = ask(c, f.addr, a->token ? a->token : f.token);
	if (r == -ECONNREFUSED || r == -ENOENT)
		err_set(&c->err, -r,
			"no run is under way in %s: its nboxd (pid %d, at %s) has ended without a good-bye",
			dir, f.pid, f.addr);
	return r;
}

/* The newest one that answers. Return: 0; -ENOENT with the sentence. */
static int ask_newest(struct client *c, struct args *a)
{
	struct live_runs runs;
	int r = live_runs_find(LIVE_RUN_TOP, ADDR_FILE_NAME, &runs);

	for (unsigned i = 0; r == 0 && i < runs.n; i++) {
		if (ask_run(c, runs.dirs[i], a) == 0)
			return 0;
		if (i + 1 < runs.n)
			client_deinit(c);
	}
	if (r == 0 && runs.n)
		return -EPROTO; /* with the sentence of the last */
	return err_set(&c->err, ENOENT,
		       "which nboxd? no run is under way under " LIVE_RUN_TOP
		       "/ here; name its results directory, "
		       "give --addr, or set NBOX_ADDR");
}

int cmd_status(int argc, char **argv)
{
	struct args a = {.addr = NULL};
	struct client c = {.state = 0};
	char found[PATH_MAX];
	int r = parse(argc, argv, &a, &c.err), code = 1;

	if (r < 0)
		fprintf(stderr, "nbox status: %s\n", c.err.text);
	if (r != 0)
		return r < 0 ? 2 : 0;
	if (a.dir) {
		r = ask_run(&c, runs_find(a.dir, found), &a);
	} else if (a.addr || getenv("NBOX_ADDR")) {
		r = ask(&c, a.addr ? a.addr : getenv("NBOX_ADDR"),
			a.token ? a.token : getenv("NBOX_TOKEN"));
		code = r == -EINVAL ? 2 : 1;
		if (r < 0 && strncmp(c.err.text, "wrong token", 11) == 0)
			fprintf(stderr,
				"nbox status: that token is not nboxd's; the results directory of its run knows it: "
				"nbox status DIR\n");
	} else {
		r = ask_newest(&c, &a);
		code = r == -ENOENT ? 2 : 1;
	}
	if (r == 0)
		c.json[strcspn(c.json, "\n")] = 0; /* puts() has one of its own */
	if (r == 0 && (a.is_json || !isatty(STDOUT_FILENO)))
		puts(plain_text(c.json));
	else if (r == 0)
		r = status_print(c.json, stdout, &c.err);
	if (r < 0)
		fprintf(stderr, "nbox status: %s\n", c.err.text);
	client_deinit(&c);
	return r == 0 ? 0 : code;
}
