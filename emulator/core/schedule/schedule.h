/* A schedule: the immutable DAG of an op's messages, held as a rule, not as a
 * list. Any message of any rank is computed in O(1), so that a world of 65,536
 * ranks costs no memory.
 *
 * Each rank runs one or more *threads*: sequences of steps that are executed in
 * order and independently of the rank's other threads. A step may receive up to
 * SCHED_FAN messages, combines them with the rank's own input, and may send the
 * result to up to SCHED_FAN peers. A message is named by its connection (source,
 * destination, lane) and its number on it, counted from 0: both ends count the
 * same. That gives the DAG: a message's predecessors are the receives of its
 * step or, when it has none, those of the latest earlier step of its thread that
 * has some; and on its connection, the message before it.
 *
 * Algorithms (rails.h: the order of ranks in a node may differ by channel):
 *   ring    AllReduce, AllGather, ReduceScatter, Broadcast, Reduce: r -> r+1
 *   tree    AllReduce: NCCL's double binary tree over nodes, chain inside a node
 *   chain   Broadcast, Reduce: pipeline along root, root+1, ...
 *   direct  AllToAll, Gather, Scatter, SendRecv: each pair its own messages
 * Closed forms of the message counts: facts of NCCL 2.28 (ring AllReduce
 * 2(n-1)*slices a loop and direction, ...), see test-schedule.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "schedule/sched.h"

const char *sched_algo_name(uint32_t algo);
int sched_algo_parse(const char *name); /* -1 when unknown */

/* Checks the request and derives the rest; the upper part stays as it was, so that
 * a copy can be changed and made again. Return: 0; -EINVAL with a sentence
 * (algorithm does not do this kind, root out of range, ...); -ENOMEM (SENDRECV). */
int sched_init(struct sched *s, struct err *err);

/* The default algorithm of a kind. */
enum sched_algo sched_default_algo(enum coll_kind kind);

uint32_t sched_n_threads(const struct sched *s, uint32_t rank);
uint64_t sched_n_steps(const struct sched *s, uint32_t rank, uint32_t thread);
void sched_step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t step,
		struct sched_step *ret);
/* No step of any rank has more bytes. For buffers. */
uint64_t sched_max_step_bytes(const struct sched *s);

/* The thread of @dst that receives the messages of a connection, and that of @src
 * that sends them. O(1) (SENDRECV: O(log calls)). UINT32_MAX: no such connection. */
uint32_t sched_recv_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);
uint32_t sched_send_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);

/* The connections of one rank that have messages: incoming ones, then outgoing ones. The caller
 * frees *ret_conns. Return: 0 or -ENOMEM. */
int sched_conns(const struct sched *s, uint32_t rank, struct sched_conn **ret_conns,
		uint32_t *ret_n_in, uint32_t *ret_n_out);

/* How many messages a connection has; 0 when there is no such connection. O(1). */
uint64_t sched_conn_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);

/* Bytes of message @index on the connection; 0: no such message. O(1). */
uint64_t sched_message_bytes(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
			     uint64_t index);

/* Bytes that a connection with @lane carries, which has messages; of a ring the mean of its
 * connections. Not SENDRECV. O(1). */
double sched_lane_bytes(const struct sched *s, uint16_t lane);

/* All messages of the op, over all ranks (SENDRECV: to and from the rank that asks). */
uint64_t sched_total_messages(const struct sched *s);
