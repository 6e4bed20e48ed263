/* Between play.c, an op's life, and play-message.c, its messages. All on the progress thread. */
#pragma once

#include "player/player.h"
#include "shim/progress/op.h"

/* What players send and receive through; the owner is the op. */
extern const struct player_io play_io;
/* Deliveries to the op may still be queued (of a killed one): they must not find a record that was
 * given away. */
void play_forget(const struct op *op);
void play_messages_deinit(void);

/* play.c: are all messages in and is the end known? Then the gate opens, or waits for its time. */
void play_check_complete(struct op *op);
