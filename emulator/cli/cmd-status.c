/* nbox status: connects to a running nboxd as a client and prints its answer. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "links/link.h"

#define ANSWER_MS 3000

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

	if (h->type == WIRE_ERROR && h->body_bytes == sizeof(struct wire_text)) {
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

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct client *c = owner;

	(void)l;
	if (c->state == 2 || c->state == -1)
		return;
	err_set(&c->err, code ? -code : EPIPE, "nboxd closed the link: %s", why);
	c->state = -1;
}

static const struct link_events events = { on_header, on_frame, on_sent, on_closed };

static int ask(struct client *c, const char *addr, const char *token)
{
	uint64_t until = clock_now_ns() + ANSWER_MS * NS_PER_MS;
	struct wire_hello hello = { .role = 1, .pid = (uint32_t)getpid() };
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
		struct pollfd p = { .fd = link_fd(c->link), .events = link_poll_events(c->link) };

		if (clock_now_ns() > until)
			return err_set(&c->err, ETIMEDOUT, "nboxd at %s did not answer within %d s", addr,
				       ANSWER_MS / 1000);
		r = link_progress(c->link);
		if (r == 0 && link_arm(c->link))
			poll(&p, 1, 50);
	}
	return c->state == 2 ? 0 : -EPROTO;
}

int cmd_status(int argc, char **argv)
{
	const char *addr = getenv("NBOX_ADDR"), *token = getenv("NBOX_TOKEN");
	struct client c = { 0 };
	int r;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--addr") == 0 && i + 1 < argc) {
			addr = argv[++i];
		} else if (strncmp(argv[i], "--addr=", 7) == 0) {
			addr = argv[i] + 7;
		} else if (strcmp(argv[i], "--token") == 0 && i + 1 < argc) {
			token = argv[++i];
		} else {
			int is_help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;

			if (!is_help)
				fprintf(stderr, "nbox status: unknown option '%s'\n", argv[i]);
			fprintf(is_help ? stdout : stderr,
				"usage: nbox status [--addr shm:PATH|tcp:HOST:PORT|rdma:HOST:PORT] [--token TOKEN]\n\n"
				"Asks a running nboxd for its state, as JSON. NBOX_ADDR and NBOX_TOKEN are "
				"the defaults;\n`nbox run` prints the address with NBOX_DEBUG=INFO.\n");
			return is_help ? 0 : 2;
		}
	}
	if (!addr) {
		fprintf(stderr, "nbox status: which nboxd? give --addr shm:PATH, tcp:HOST:PORT or rdma:HOST:PORT, or set "
				"NBOX_ADDR\n");
		return 2;
	}
	r = ask(&c, addr, token);
	if (r == 0)
		puts(c.json);
	else
		fprintf(stderr, "nbox status: %s\n", c.err.text);
	link_free(c.link);
	free(c.json);
	return r == 0 ? 0 : 1;
}
