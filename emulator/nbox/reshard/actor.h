/* One process of nbox reshard verify: a device with its tile and its links. */
#pragma once

#include "links/endpoint.h"
#include "mesh/mesh.h"

#define VERIFY_DEVICES 64 /* of both meshes */

/* What is carried out. */
struct verify {
	const struct mesh_reshard *reshard;
	const struct turns *plan;
	enum mesh_strategy strategy; /* not signal */
	const struct mesh_net *net;  /* of it the pieces of a broadcast */
	const char *link;            /* "shm", "tcp" */
};

/* Where the process puts what came out; in memory that it shares with its parent. */
struct actor_result {
	uint64_t elements, wrong, first_wrong;
	uint64_t crossing_bytes, inside_bytes;
	int code; /* negative errno, with the sentence */
	struct err err;
};

/* Who sends what to whom: made before the processes are. Devices are those of the source, then
 * those of the destination. */
struct actor_world {
	const struct verify *verify;
	uint32_t n;
	bool is_joined[VERIFY_DEVICES][VERIFY_DEVICES]; /* by a link */
	struct listener
		*listeners[VERIFY_DEVICES]; /* owned; of devices that somebody connects to */
};

/* Pieces of the task's broadcast. */
uint32_t actor_pieces(const struct verify *v, const struct mesh_task *task);
/* The device of the destination at @place of the task's receivers. */
uint32_t actor_receiver(const struct verify *v, uint32_t task, uint32_t place);
/* The device that sends it. */
uint32_t actor_sender(const struct verify *v, const struct turn *turn);
/* Plays the device until it has all that it waits for and has sent all. It gives up where nothing
 * moves for 30 s. */
void actor_play(const struct actor_world *w, uint32_t device, struct actor_result *ret);
