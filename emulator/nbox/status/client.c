/* See client.h. */
#include "nbox/status/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "links/endpoint.h"

#define ANSWER_MS 10000

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner, (void)l, (void)h, (void)ret_body;
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct status_client *c = owner;
	struct wire_hdr ask;

	if (h->type != WIRE_STATUS && wire_body_check(h, body, &c->err) < 0) {
		c->state = -1; /* another user may have written DIR, or listen at its address */
	} else if (h->type == WIRE_ERROR) {
		err_set(&c->err, EPROTO, "%s", ((const struct wire_text *)body)->text);
		c->has_ended = true; /* it says so to each link when it ends */
		c->state = -1;
	} else if (h->type == WIRE_WELCOME && c->state == 0) {
		wire_hdr_init(&ask, WIRE_STATUS, 0);
		c->state = 1;
		return link_send_copy(l, &ask, NULL);
	} else if (h->type == WIRE_STATUS && c->state == 1) {
		free(c->json);
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
	struct status_client *c = owner;

	(void)l;
	c->has_ended = true;
	if (c->state == 2 || c->state == -1)
		return;
	err_set(&c->err, r ? -r : EPIPE, "nboxd closed the link: %s", why);
	c->state = -1;
}

static const struct link_events events = {on_header, on_frame, on_sent, on_closed};

/* Return: as status_ask(). */
static int wait_for_answer(struct status_client *c)
{
	uint64_t until = clock_now_ns() + ANSWER_MS * NS_PER_MS;
	int r = 0;

	while (r >= 0 && c->state >= 0 && c->state < 2) {
		struct pollfd p = {.fd = link_fd(c->link), .events = link_poll_events(c->link)};

		if (c->stop && *c->stop)
			return -EINTR;
		if (clock_now_ns() > until)
			return err_set(&c->err, ETIMEDOUT, "nboxd did not answer within %d s",
				       ANSWER_MS / 1000);
		r = link_progress(c->link);
		if (r == 0 && link_arm(c->link))
			poll(&p, 1, 50);
	}
	return c->state == 2 ? 0 : c->has_ended ? -EPIPE : -EPROTO;
}

int status_open(struct status_client *c, const char *addr, const char *token)
{
	struct wire_hello hello = {.role = 1, .pid = (uint32_t)getpid()};
	struct wire_hdr h;
	int r = link_connect(addr, ANSWER_MS, &events, c, &c->link, &c->err);

	if (r < 0)
		return r;
	strncpy((char *)hello.token, token ? token : "", sizeof(hello.token));
	hello.now_ns = clock_now_ns();
	gethostname(hello.host, sizeof(hello.host) - 1);
	wire_hdr_init(&h, WIRE_HELLO, sizeof(hello));
	r = link_send_copy(c->link, &h, &hello);
	return r < 0 ? r : wait_for_answer(c);
}

int status_ask(struct status_client *c)
{
	struct wire_hdr h;
	int r;

	if (c->has_ended)
		return -EPIPE;
	wire_hdr_init(&h, WIRE_STATUS, 0);
	c->state = 1;
	r = link_send_copy(c->link, &h, NULL);
	return r < 0 ? r : wait_for_answer(c);
}

void status_close(struct status_client *c)
{
	c->link = link_free(c->link);
	free(c->json);
	c->json = NULL;
	c->state = 0;
}
