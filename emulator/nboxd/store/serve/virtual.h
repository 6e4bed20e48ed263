/* What nboxd does in the store for ranks that do not exist: it applies policy.h to keys that are
 * missing, at once and after a while, and says what is waited for.
 *
 * What a peer waits for is looked at after settle and then once a second: an id that a virtual rank
 * would have made is invented, and after 5 s the log says what is waited for, why, and what to do.
 */
#pragma once

#include "nboxd/store/serve/peer.h"

/* @refuse_one: takes and closes a connection at a listener when no descriptor is left. Return: 0;
 * -ENOMEM. */
int virtual_open(struct store_server *ss, void (*refuse_one)(void *ctx, int listen_fd));
void virtual_close(struct store_server *ss);
/* As their namesakes of struct store_events. */
void virtual_on_missing(void *owner, void *client_owner, struct store_bytes key);
void virtual_on_set(void *owner, void *client_owner, struct store_bytes key,
		    struct store_bytes value);
int64_t virtual_initial_count(void *owner, struct store_bytes key, int64_t world);
/* Looks at waits that are due. */
void virtual_tick(struct store_server *ss, uint64_t now_ns);
/* The keys are forgotten, and with them what was invented. */
void virtual_clear(struct store_server *ss);

/* A key that nboxd made up for a rank that turned out to be real has two ids: makes @id
 * the one that others may have been given. NULL allowed. */
void store_server_canonical_id(const struct store_server *ss, uint8_t id[WIRE_ID_BYTES]);
/* When the oldest wait began; UINT64_MAX: nobody waits. */
uint64_t store_server_waits_since_ns(const struct store_server *ss);
/* A process of this host that waits; 0: none is known. */
uint32_t store_server_waiting_pid(const struct store_server *ss);
/* One sentence for each wait that is older than 1 s. NULL allowed. */
void store_server_describe(const struct store_server *ss, uint64_t now_ns,
			   void (*say)(void *ctx, const char *sentence), void *ctx);
