/* One client of a store: the bytes it sends are requests, what is to be answered are bytes again.
 * The owner keeps both: it offers what has come, and sends what on_output() of struct store_events
 * gives it. */
#pragma once

#include "base/err.h"
#include "nboxd/store/store.h"

int store_client_new(struct store *s, void *client_owner, struct store_client **ret);
struct store_client *store_client_free(struct store_client *c); /* ends its wait, silently */
/**
 * store_client_feed - serves the requests that are whole, up to STORE_OUTPUT_HIGH of unread replies
 * @bytes: all that has come and was not taken before
 *
 * Return: 0; -EPROTO, -ENOBUFS, -EDQUOT (STORE_CLIENTS_MAX), -ENOMEM with the sentence: hang up.
 */
int store_client_feed(struct store_client *c, const uint8_t *bytes, size_t n, size_t *ret_taken,
		      struct err *err);
/* So many bytes of its replies have not been sent. */
void store_client_set_unread(struct store_client *c, size_t n);
bool store_client_is_valid(const struct store_client *c); /* has shown the magic number */
