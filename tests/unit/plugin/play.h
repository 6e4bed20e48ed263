/* NCCL (nccl.h) and nboxd (fake-session.h) played against shim/plugin, in one communicator. */
#pragma once

#include "base/cleanup.h"
#include "fake-session.h"
#include "nccl-plugin/plugin.h"
#include "nccl.h"
#include "shim/plugin/plugin.h"
#include "shim/progress/traffic.h"

#define N_RANKS 16
#define RANK 3
#define PEER 9
#define NUMBER UINT64_C(0x343193647d986d6e) /* that NCCL makes of an id, somehow */

extern struct comm *comm;
extern struct nccl nccl;
extern float send_buffer[64], recv_buffer[64];
extern unsigned char sent_bytes[1 << 20]; /* of a message: what nboxd sends */
extern const char *const protocol_names[];

const struct traffic_events *events(void);
void play_begin(int version, enum wire_exchange exchange);
void play_end(void);
struct plugin_call all_reduce(uint64_t seq, ncclDataType_t dtype, ncclRedOp_t redop);
struct nccl_call all_reduce_event(const char *algorithm, const char *protocol, const char *dtype);
/* An AllReduce of floats; its handle. */
void *start_all_reduce(uint64_t seq, int protocol);
struct sent_frame next_frame(enum wire_type type);
void no_frame(void);
void play_post(struct proxy_op *op, size_t bytes);
/* nboxd's MESSAGE: its first @n bytes are sent_bytes. Return: of received(). */
int play_answer(const struct sent_frame *want, size_t n, uint16_t flags, struct err *err);
void play_answer_well(const struct sent_frame *want, size_t n, uint16_t flags);
void check_flags(const unsigned char *at, size_t n, int protocol, uint64_t step);
/* Data of @n bytes with their flags left out; @is_from: byte i is that of sent_bytes, else @word.
 */
void check_data(const unsigned char *at, size_t n, int protocol, bool is_from, uint64_t word);
