/* Ports at which the other side is always the one that connects: see groups.c. */
#pragma once

#include <sys/socket.h>

/* A free port at the host of @a whose raw bytes, read as gloo does, are as low as can be: all
 * with a low byte of 0 first, those below the range that programs are given from. Return: the
 * descriptor, listening; -EADDRNOTAVAIL. */
int low_port_listen(struct sockaddr_storage *a);
