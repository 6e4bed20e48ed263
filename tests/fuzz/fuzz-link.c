/* A byte stream into the parser of links, in pieces and with holds that the first bytes of the
 * input choose. Then the peer goes: the link tells its owner once, after every whole frame. */
#include "fuzz.h"

#include <errno.h>

#include "loop.h"

struct owner {
	uint32_t pattern;
	int n_closed, n_open; /* headers without their frames */
	unsigned char *body;
};

static uint32_t draw(struct owner *o)
{
	o->pattern = o->pattern * 1664525u + 1013904223u;
	return o->pattern >> 16;
}

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct owner *o = owner;

	(void)l;
	if (wire_hdr_check(h, NULL) || o->n_closed || o->n_open)
		abort();
	if (draw(o) % 8 == 0)
		return LINK_HOLD;
	o->n_open++;
	if (h->body_bytes && *ret_body)
		memset(*ret_body, 0, h->body_bytes); /* all of it must be there */
	if (h->type == WIRE_MESSAGE && h->body_bytes < (1 << 20) && draw(o) % 2) {
		free(o->body);
		o->body = malloc(h->body_bytes ? h->body_bytes : 1);
		*ret_body = o->body;
	}
	return draw(o) % 64 == 0 ? -EBADMSG : 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct owner *o = owner;
	struct err err;

	if (o->n_open-- != 1 || o->n_closed)
		abort();
	if (h->type != WIRE_MESSAGE && h->type != WIRE_BOOT && !wire_body_check(h, body, &err) &&
	    h->body_bytes < 4096)
		link_send_copy(l, h, body);
	return 0;
}

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct owner *o = owner;

	(void)l;
	(void)code;
	if (o->n_closed++ || !why[0])
		abort();
}

static const struct link_events events = {on_header, on_frame, NULL, on_closed};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct owner o = {0};
	struct link *a, *b;
	size_t at = 4, piece;
	int idle = 0;

	if (size < 4 || link_loop_pair(&events, NULL, &o, &a, &b))
		return 0;
	memcpy(&o.pattern, data, 4);
	while (at < size && !o.n_closed) {
		piece = 1 + draw(&o) % (draw(&o) % 2 ? 8 : 500);
		piece = loop_inject(b, data + at, piece < size - at ? piece : size - at);
		at += piece;
		loop_set_most(b, 1 + draw(&o) % 300);
		if (link_progress(b) <= 0 && !piece && ++idle > 1000)
			break;
		link_resume(b);
	}
	link_free(a);
	for (idle = 0; !o.n_closed; idle++) {
		link_resume(b);
		link_progress(b);
		if (idle > 100000)
			abort(); /* it never ends */
	}
	link_free(b);
	free(o.body);
	return 0;
}
