/* One client of a store: the bytes it sends are requests, what is to be answered are bytes again.
 * The owner brings bytes in and takes bytes out:
 *
 *   store_client_new() → store_client_feed() → store_client_output() → store_client_sent() */
#pragma once

#include "base/err.h"
#include "nboxd/store/store.h"

int store_client_new(struct store *s, void *client_owner, struct store_client **ret);
struct store_client *store_client_free(struct store_client *c); /* ends its wait, silently */
/**
 * store_client_feed - what the client sent
 * @n: 0 is allowed: to go on after store_client_sent()
 *
 * Return: 0; -EPROTO, -ENOBUFS, -EDQUOT (STORE_CLIENTS_MAX), -ENOMEM with the sentence: answer what
 * is in the output, then hang up.
 */
int store_client_feed(struct store_client *c, const void *bytes, size_t n, struct err *err);
/* False while its replies pile up: read no more from it. */
bool store_client_is_served(const struct store_client *c);
struct store_bytes store_client_output(const struct store_client *c);
void store_client_sent(struct store_client *c, size_t n);
bool store_client_is_valid(const struct store_client *c); /* has shown the magic number */
