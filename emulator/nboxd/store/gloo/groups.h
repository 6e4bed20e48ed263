/* Virtual ranks of gloo groups: nboxd gives them addresses in the store, takes their
 * connections, and plays their part in barriers, in all-gathers, and in broadcasts and scatters
 * from real ranks. All other collectives need values of virtual ranks: those are refused, with a
 * line in the log and the end of the connection (the job gets an exception at once). See gloo.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nboxd/store/gloo/calls.h"
#include "nboxd/store/torch-key.h"

struct store_gloo;

int gloo_new(const struct gloo_env *env, struct store_gloo **ret); /* 0; -ENOMEM */
struct store_gloo *gloo_free(struct store_gloo *gl);               /* NULL allowed; returns NULL */
void gloo_clear(struct store_gloo *gl);                            /* all groups; NULL allowed */
/* A real rank has set its address. @world_rank: its world rank, -1 not known. */
void gloo_on_address(struct store_gloo *gl, struct store_bytes key, const struct torch_key *k,
		     struct store_bytes value, int64_t world_rank);
/* When a rank of the key's group is not a real one, as far as can be seen: since this time no
 * real rank has set an address, UINT64_MAX: none has; 0: all real ranks have. */
uint64_t gloo_quiet_since_ns(const struct store_gloo *gl, struct store_bytes key);
/* Sets the address of a rank that does not exist. Return: whether it is set. */
bool gloo_play(struct store_gloo *gl, struct store_bytes key, const struct torch_key *k);
/* One sentence for each real rank that waits for a virtual one. */
void gloo_describe(const struct store_gloo *gl, uint64_t now_ns,
		   void (*say_it)(void *ctx, const char *sentence), void *ctx);
/* Says what waits for 5 s. */
void gloo_tick(struct store_gloo *gl, uint64_t now_ns);
