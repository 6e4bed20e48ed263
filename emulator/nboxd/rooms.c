/* See rooms.h. */
#include "nboxd/rooms.h"

#include "nboxd/store/serve/server.h"

const char *server_addr(const struct server *s)
{
	const char *addr = listen_addr(&s->listen, 0);

	return addr ? addr : s->config->addr;
}

const char *server_store_addr(const struct server *s)
{
	return s->store ? store_server_addr(s->store) : NULL;
}
