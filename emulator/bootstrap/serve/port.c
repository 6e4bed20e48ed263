/* See port.h. */
#include "bootstrap/serve/port.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "bootstrap/serve/address.h"

#define ACCEPTS_A_TURN 64

/* No descriptor is left. A connection that is not taken would keep the listener readable for ever:
 * it is taken with the reserve and hung up. */
static void refuse_one(struct serve_port *p)
{
	struct port_env *e = p->env;
	char text[ADDRESS_TEXT_MAX];

	closep(&e->reserve);
	closep(&(int){accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)});
	e->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	e->refused(e->ctx, address_text(p->address, text, sizeof(text)),
		   "no descriptors are left here; raise ulimit -n");
}

static void on_accept(evutil_socket_t listen_fd, short what, void *ctx)
{
	struct serve_port *p = ctx;

	(void)what;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		struct sockaddr_storage a = {0};
		socklen_t len = sizeof(a);
		uint8_t from[NCCL_ADDRESS_BYTES] = {0};
		int fd = accept4(listen_fd, (struct sockaddr *)&a, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			refuse_one(p);
		if (fd < 0)
			return;
		address_set(from, (const struct sockaddr *)&a);
		p->env->taken(p->env->ctx, p, fd, from);
	}
}

static int listen_at(struct serve_port *p)
{
	struct sockaddr_storage a = {0};
	socklen_t len = address_len(p->address);
	int on = 1;

	memcpy(&a, p->address, len);
	p->fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return -errno;
	setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* see link_dial() */
	if (bind(p->fd, (const struct sockaddr *)&a, len) < 0 || listen(p->fd, SOMAXCONN) < 0 ||
	    getsockname(p->fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	return address_set(p->address, (const struct sockaddr *)&a);
}

int port_open(struct port_env *env, unsigned number, struct serve_port **ret, struct err *err)
{
	struct serve_port *p = calloc(1, sizeof(*p));
	char text[ADDRESS_TEXT_MAX];
	int r;

	if (!p)
		return err_set(err, ENOMEM, "bootstrap: out of memory");
	p->env = env;
	p->number = number;
	p->fd = -1;
	memcpy(p->address, env->address, sizeof(p->address));
	r = listen_at(p);
	if (r < 0) {
		err_set(err, -r, "bootstrap: cannot listen at %s: %s%s",
			address_text(p->address, text, sizeof(text)), strerror(-r),
			r == -EMFILE || r == -ENFILE ? "; raise ulimit -n"
			: r == -EADDRNOTAVAIL        ? "; name an address of this host"
						     : "");
	} else {
		p->on_accept = event_new(env->base, p->fd, EV_READ | EV_PERSIST, on_accept, p);
		if (!p->on_accept || event_add(p->on_accept, NULL) < 0)
			r = err_set(err, ENOMEM, "bootstrap: out of memory");
	}
	if (r < 0) {
		port_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct serve_port *port_free(struct serve_port *p)
{
	if (!p)
		return NULL;
	if (p->on_accept)
		event_free(p->on_accept);
	closep(&p->fd);
	free(p);
	return NULL;
}
