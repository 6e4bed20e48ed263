/* Gates on words that the device writes and waits for: stream memory operations on
 * pinned host memory. No host function, no kernel, nothing that a captured graph could
 * not repeat by itself.
 *
 * A gate has two words of 32 bits, in memory of the shim's that the driver pins. The device, in
 * stream order:
 *
 *   arrive   state = 1
 *            (the real work)
 *   wait     state = 2; until release >= 1; state = 0; release = 0
 *
 * and the progress thread, which looks at them (cuda_gate_poll):
 *
 *   state leaves 0           the stream is here: on_arrive
 *   state is 2               the real work is done
 *   release = 1 (by us)      when the op is over
 *   release is 0 again       the stream went on: on_passed
 *
 * All values are constants, and after a pass both words are as before it: that is what
 * makes the replays of a graph announce themselves. Each word has one writer at a time:
 * @state only the device; @release the host from arrival on until it wrote 1, then the
 * device until the next arrival. The device clears @state before @release, so a host
 * that sees a cleared @release and then a @state that is not 0 sees the next pass, however fast a
 * replay follows. No pass is missed, since the device waits for an answer to each.
 *
 * Ordering. The CUDA driver API's "Stream Memory Operations" say: a write is done after
 * what is before it in the stream, and after a fence like __threadfence_system() (unless
 * NO_MEMORY_BARRIER is asked for, which it is not); operations of one batch are carried
 * out in order. Towards the device only the word @release flows, no data that it would
 * publish: CU_STREAM_WAIT_VALUE_FLUSH, which orders other remote writes before the wait,
 * is not needed. A wait is `(int32_t)(word - 1) >= 0`.
 * The host loads the words with acquire, since it reads several: a @state after a cleared @release,
 * the @state of an earlier gate of the same stream after a later one's. Plain loads would be right
 * on x86-64, which keeps loads in order, and wrong on aarch64. What the job's thread wrote into a
 * gate before it enqueued it reaches the progress thread through the driver's submission and the
 * device's write, both of which the driver has to order for its own commands.
 *
 * The progress thread notices an arrival late. While something moves, or moved a moment ago, it
 * looks without pause. When nothing has moved for a time t it naps for t/64, at most 100 us while
 * calls are in streams, 1 ms while only captured graphs could be replayed (nap_ns). So a time of
 * arrival is late by at most about 1.6 % of the pause before it or 100 us, plus what the wake-up
 * takes.
 *
 * The progress thread never calls the driver: a call may wait for a stream that waits for the
 * progress thread.
 *
 * The words of a page lie next to each other: looking at 16 gates that are idle reads
 * one cache line, which stays in this core's cache until the device writes it. */
#pragma once

#include <stdbool.h>

#include "shim/gate/cuda-driver.h"
#include "shim/gate/device.h"

struct cuda_slot; /* a gate's words; in gate->slot */

/* Gives back the words of @g. No stream may hold the gate any more. */
void cuda_gate_deinit(struct gate *g);
void cuda_stamp_deinit(struct stamp *st);

/* Enqueue; any thread, also during a capture. The current context is the stream's. Return:
 * CUDA_SUCCESS or the driver's error. @hold: NULL, or what to enqueue between "real work done" and
 * the wait; it is given the address of the word @release. */
CUresult cuda_gate_arrive(const struct cuda_driver *d, CUstream s, struct gate *g);
CUresult cuda_gate_wait(const struct cuda_driver *d, CUstream s, struct gate *g,
			CUresult (*hold)(void *ctx, CUstream s, CUdeviceptr release), void *ctx);

/* A stamp is the first half of a gate: state = 1, which the progress thread sees and clears. */
CUresult cuda_gate_stamp(const struct cuda_driver *d, CUstream s, struct stamp *st,
			 bool is_captured);

/* --- the progress thread ----------------------------------------------------------- */

/* Opens @g, which has arrived. */
void cuda_gate_release(struct gate *g);
/* Looks at all gates once, calls on_arrive and on_passed. Return: whether any moved. */
bool cuda_gate_poll(void);
/* How long the progress thread need not look, when nothing has moved for @quiet_ns: 0 for no pause;
 * UINT64_MAX when there is no gate that could move. Sequentially consistent with
 * cuda_gate_arrive(). */
uint64_t cuda_gate_nap_ns(uint64_t quiet_ns);
/* The process is ending and nobody will look any more: opens every gate once. */
void cuda_gate_open_all(void);
