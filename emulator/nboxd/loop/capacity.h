/* Who gives way when connections are many: links and clients of the store that have said nothing
 * yet hold a place and a descriptor for up to 5 s, and whoever can connect could hold all of them.
 * A new one takes the place of the oldest of those. */
#pragma once

#include <stdbool.h>

struct server;

/* As many descriptors as this process may have: each worker has some connections. */
void places_raise_limit(void);
/**
 * places_make - makes room beside a connection that has just been accepted
 * @is_full: it is one more than may be
 * @link, @store_peer: what it is (one of them NULL): does not give way to itself
 *
 * On the loop, not inside link_progress(). Return: false: it is one too many, and nobody gave way.
 */
bool places_make(struct server *s, bool is_full, const void *link, const void *store_peer);
