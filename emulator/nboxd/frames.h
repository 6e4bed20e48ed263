/* The links' sink: gives each frame of a worker to the room that it is for, and the end of a worker
 * to the rooms that it concerns. */
#pragma once

#include "nboxd/loop/worker.h"

/* Its ctx is the server. */
extern const struct workers_sink frames_sink;
