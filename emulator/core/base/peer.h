/* Who is at the other end of a unix socket. A name in the abstract namespace or below /tmp can be
 * taken by any user, who would get what is sent there first: the token. */
#pragma once

#include "base/err.h"

/* The other end of @fd must be a process of this user, or root's: of a socket that connected, the
 * one that listens. Return: 0; -EACCES with the sentence, that names the user; other negative
 * errno. */
int peer_check(int fd, struct err *err);
