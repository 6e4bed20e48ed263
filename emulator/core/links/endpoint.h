/* Where links come from: connecting, listening, accepting, by the address of a link (link.h). */
#pragma once

#include "links/link.h"

struct listener;

/* Connects within @timeout_ms. Return: 0; negative errno with the sentence. */
int link_connect(const char *addr, int timeout_ms, const struct link_events *ev, void *owner,
		 struct link **ret, struct err *err);
/* The same with the bodies of MESSAGE frames received into memory of @gpu, where they
 * are thrown away, whatever on_header says. Return: also -ENOTSUP: that kind of link has no
 * device that could write there; what @gpu's alloc() returns. */
int link_connect_gpu(const char *addr, int timeout_ms, const struct link_gpu *gpu,
		     const struct link_events *ev, void *owner, struct link **ret, struct err *err);
/* shm: refuses a path where somebody listens (-EADDRINUSE), replaces a dead one,
 * and removes its own on listener_free(); only processes of this user can connect.
 * tcp, rdma: port 0 picks one; listens on the given host's address only. rdma: the links
 * accepted share the listener's descriptor, so it may be readable for them alone, and
 * lives until the last of them is freed; all are its thread's. */
int listener_open(const char *addr, struct listener **ret, struct err *err);
struct listener *listener_free(struct listener *l);
int listener_fd(const struct listener *l);           /* readable: link_accept() */
const char *listener_addr(const struct listener *l); /* with the real port */
/* Never blocks on the peer. Return: 0; -EAGAIN: nobody waits; another negative errno with the
 * sentence: one connection was lost (-EMFILE: refused), and the listener goes on. rdma also
 * returns, once each with a sentence: -ENODEV: the device was removed, and nobody can connect;
 * LINK_LISTENS_AGAIN: it is back. The caller has to ask now and then for that: listener_fd() is
 * readable once a second. */
enum { LINK_LISTENS_AGAIN = 2 };
int link_accept(struct listener *l, const struct link_events *ev, void *owner, struct link **ret,
		struct err *err);
