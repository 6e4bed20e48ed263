/* The user at the other end of a unix socket. Any user can take a name in the abstract namespace
 * or below /tmp, and would get the first thing that is sent there: the token. */
#pragma once

#include "base/err.h"

/* The other end of @fd must be a process of this user, or root's: of a socket that connected, the
 * one that listens. Return: 0; -EACCES with the sentence, that names the user; other negative
 * errno. */
int peer_check(int fd, struct err *err);
