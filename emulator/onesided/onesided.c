/* See onesided.h. */
#include "onesided/onesided.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

const char *const onesided_bound_names[] = {"compute", "headers", "link"};

static uint64_t samples_of(const struct onesided *o, uint32_t rank)
{
	return o->samples / o->n_ranks + (rank < o->samples % o->n_ranks);
}

struct onesided_volume onesided_volume(const struct onesided *o, uint32_t rank)
{
	uint64_t of_sample = o->tables * o->vector_bytes, own = samples_of(o, rank);

	return (struct onesided_volume){
		.sent = of_sample * (o->samples - own),
		.received = of_sample * own * (o->n_ranks - 1),
		.pair = of_sample * samples_of(o, rank == 0),
	};
}

/* The first rank receives most, the last one sends most. */
static uint64_t most_received(const struct onesided *o)
{
	return onesided_volume(o, 0).received;
}

static uint64_t most_sent(const struct onesided *o)
{
	return onesided_volume(o, o->n_ranks - 1).sent;
}

/* Of stores, on the link that has most. */
static uint64_t link_bytes(const struct onesided *o)
{
	return o->has_links_to_each ? onesided_volume(o, o->n_ranks - 1).pair : most_sent(o);
}

static uint64_t messages(uint64_t bytes, uint32_t of_bytes)
{
	return (bytes + of_bytes - 1) / of_bytes;
}

uint64_t onesided_messages(const struct onesided *o)
{
	return messages(most_sent(o), o->message_bytes);
}

struct onesided_collective onesided_collective(const struct onesided *o)
{
	uint64_t sent = link_bytes(o), received = most_received(o);
	uint64_t most = o->has_links_to_each || sent > received ? sent : received;
	struct onesided_collective c = {
		.compute_ns = o->compute_ns,
		.sync_ns = o->sync_ns + o->sync_peer_ns * (o->n_ranks - 2),
		.wire_ns = o->alpha_ns + (double)most / o->bandwidth,
		.unpack_ns = o->unpack > 0 ? (double)received / o->unpack : 0,
	};

	c.end_ns = c.compute_ns + c.sync_ns + c.wire_ns + c.unpack_ns;
	return c;
}

static double with_stores(const struct onesided *o)
{
	return o->compute_ns * (1 + o->slowdown * (o->n_ranks - 1) / o->n_ranks);
}

static double behind_last(const struct onesided *o)
{
	return o->alpha_ns + o->quiet_ns + o->quiet_peer_ns * (o->n_ranks - 2);
}

double onesided_closed(const struct onesided *o)
{
	double n = (double)messages(link_bytes(o), o->message_bytes), c = with_stores(o);
	double one = ((double)o->message_bytes + o->header_bytes) / o->bandwidth;

	return n > 0 ? fmax(c + one, c / n + n * one) + behind_last(o) : c;
}

/* --- simulation ------------------------------------------------------------------- */

struct buffer { /* of the messages for a peer */
	uint64_t bytes;
	double since;
};

struct link {
	const struct onesided *o;
	const struct onesided_sink *sink;
	double free_ns; /* it has nothing to send from then on */
	uint64_t packets, bytes;
	struct buffer *buffers; /* owned; NULL: there is no aggregator */
	uint32_t n_buffers;
};

static void send_packet(struct link *l, double at, uint64_t bytes)
{
	double start = fmax(at, l->free_ns);

	l->free_ns = start + (double)(bytes + l->o->header_bytes) / l->o->bandwidth;
	l->packets++;
	l->bytes += bytes;
	if (l->sink)
		l->sink->packet(l->sink->ctx, start, l->free_ns, bytes);
}

/* Peers take turns with messages, so their buffers are filled, and sent, in turns. */
static struct buffer *oldest(struct link *l)
{
	struct buffer *b = &l->buffers[l->packets % l->n_buffers];

	return b->bytes ? b : NULL;
}

static void flush(struct link *l, double at, struct buffer *b)
{
	send_packet(l, at, b->bytes);
	b->bytes = 0;
}

static void aggregate(struct link *l, double at, struct buffer *b, uint64_t bytes)
{
	struct buffer *first;

	while ((first = oldest(l)) && first->since + l->o->flush_ns <= at)
		flush(l, first->since + l->o->flush_ns, first);
	if (!b->bytes)
		b->since = at;
	b->bytes += bytes;
	if (b->bytes >= l->o->flush_bytes)
		flush(l, at, b);
}

static enum onesided_bound bound_of(const struct link *l, double compute_ns)
{
	double bytes = (double)l->bytes, room = compute_ns * l->o->bandwidth;

	return bytes + (double)l->packets * l->o->header_bytes <= room ? ONESIDED_COMPUTE
	       : bytes <= room                                         ? ONESIDED_HEADERS
								       : ONESIDED_LINK;
}

int onesided_play(const struct onesided *o, const struct onesided_sink *sink,
		  struct onesided_stores *ret)
{
	uint32_t peers = o->has_links_to_each ? 1 : o->n_ranks - 1;
	CLEANUP(freep) struct buffer *buffers = calloc(peers, sizeof(*buffers));
	struct link l = {.o = o, .sink = sink, .buffers = buffers, .n_buffers = peers};
	uint64_t bytes = link_bytes(o), n = messages(bytes, o->message_bytes);
	double c = with_stores(o);
	struct buffer *first;

	if (!buffers)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t left = bytes - i * o->message_bytes;
		uint64_t now = left < o->message_bytes ? left : o->message_bytes;
		double at = c * (double)(i + 1) / (double)n;

		if (o->flush_bytes)
			aggregate(&l, at, &buffers[i % peers], now);
		else
			send_packet(&l, at, now);
	}
	while ((first = oldest(&l)))
		flush(&l, c, first);
	*ret = (struct onesided_stores){
		.compute_ns = c,
		.end_ns = n ? fmax(l.free_ns, c) + behind_last(o) : c,
		.packets = l.packets,
		.bytes = l.bytes,
		.bound = bound_of(&l, c),
	};
	return 0;
}

/* --- bytes over time ---------------------------------------------------------------- */

struct curve {
	double step_ns, sent;
	uint32_t n, next;
	double *y;
};

static void draw_packet(void *ctx, double start_ns, double end_ns, uint64_t bytes)
{
	struct curve *c = ctx;
	double at;

	for (; c->next < c->n && (at = c->next * c->step_ns) < end_ns; c->next++)
		c->y[c->next] =
			c->sent + fmax(at - start_ns, 0) / (end_ns - start_ns) * (double)bytes;
	c->sent += (double)bytes;
}

static void draw_rest(struct curve *c)
{
	for (; c->next < c->n; c->next++)
		c->y[c->next] = c->sent;
}

int onesided_curve(const struct onesided *o, double until_ns, uint32_t n, double *ret)
{
	struct curve c = {.step_ns = until_ns / (n - 1), .n = n, .y = ret};
	struct onesided_stores unused;
	int r = onesided_play(o, &(struct onesided_sink){&c, draw_packet}, &unused);

	draw_rest(&c);
	return r;
}

void onesided_collective_curve(const struct onesided *o, double until_ns, uint32_t n, double *ret)
{
	struct curve c = {.step_ns = until_ns / (n - 1), .n = n, .y = ret};
	struct onesided_collective parts = onesided_collective(o);
	double from = parts.compute_ns + parts.sync_ns;

	draw_packet(&c, from, from + parts.wire_ns, link_bytes(o));
	draw_rest(&c);
}
