/* All-to-alls whose ranks do not send alike: --alltoall FILE says what all ranks of a communicator
 * send, of which a real rank shows its own row and column only.
 *
 * A group of calls of a communicator with as many ranks is recognised where its row and column are
 * those of the matrix, scaled, or of its transpose, as a job sends back what it received (gradients
 * of embeddings, the tokens of experts); a tenth of the bytes may be elsewhere. The others send by
 * the matrix, scaled to what the real ranks have. The op takes what the network needs for all these
 * messages: each rank is over with the last one, as virtual ranks do not tell how long each took.
 * Another group of that communicator with more than one peer keeps the time that it had, and is
 * counted. */
#pragma once

#include "engine/matrix-calls.h"
#include "op/table.h"

/* Sets op->p2p->matrix and its flags. Return: 0; -ENOMEM. */
int alltoall_find(struct op *op);
/* The calls of all ranks, if the matrix says them of @run, whose posts and their calls are known.
 * Return: 1; 0, they are left alone; -ENOMEM. matrix_calls_deinit(@ret) in any case; it was zero.
 */
int alltoall_fill(const struct run *run, struct matrix_calls *ret);
