/* Where a connection begins that a real rank has opened: the port and the magic say what it is for.
 */
#include "bootstrap/comm.h"
#include "bootstrap/message.h"
#include "bootstrap/root.h"

#include <stdarg.h>
#include <stdio.h>

/* Nobody's communicator is harmed. */
__attribute__((format(printf, 2, 3))) static void refuse(struct bootstrap_conn *c, const char *fmt,
							 ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->sink->refused)
		c->sink->refused(c->ctx, c, text);
	conn_hang_up(c, true);
}

static void door_open(struct bootstrap_conn *c)
{
	uint64_t magic = hello_magic(&c->hello);
	struct bootstrap_comm *comm = c->port == PORT_ROOT
					      ? comm_find_root(c->all, magic, &c->root)
					      : bootstrap_comm_find(c->all, magic, c->door);

	if (!comm) {
		refuse(c, "its magic, %016llx, is of no communicator here",
		       (unsigned long long)magic);
	} else if (hello_type(&c->hello) != NCCL_SOCKET_BOOTSTRAP) {
		refuse(c, "it is of type %d, NCCL's bootstrap has %d", hello_type(&c->hello),
		       NCCL_SOCKET_BOOTSTRAP);
	} else if (c->port >= PORT_REAL && c->port - PORT_REAL >= comm->n_real) {
		refuse(c, "its port is of real rank number %u, its communicator has %u of them",
		       c->port - PORT_REAL, comm->n_real);
	} else if (comm_attach(comm, c) == 0) {
		if (c->port == PORT_ROOT)
			root_begin(c);
		else
			message_begin(c);
	} else {
		conn_hang_up(c, true);
	}
}

static void door_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	if (!hello_take(&c->hello, &bytes, &n))
		return;
	door_open(c);
	if (!c->is_hung_up && n)
		c->kind->in(c, bytes, n);
}

static void door_ended(struct bootstrap_conn *c, int error)
{
	(void)error;
	refuse(c, "it has sent %u of the %u bytes that a connection of NCCL's begins with",
	       c->hello.got, HELLO_BYTES);
}

static const struct conn_kind door_kind = {.name = "new", .in = door_in, .ended = door_ended};

struct bootstrap_conn *bootstrap_conn_accepted(struct bootstrap *b, unsigned port)
{
	struct bootstrap_conn *c = conn_new(b, b->sink, b->ctx, &door_kind, &b->loose);

	if (c) {
		c->door = port / PORT_DOOR;
		c->port = port % PORT_DOOR;
		c->is_known = true;
	}
	return c;
}
