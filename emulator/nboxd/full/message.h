/* Frames of NCCL's own messages: FLOW, WANT and MESSAGE of real ranks, and the MESSAGEs that go to
 * them. Each belongs to a member of a communicator that has an id; what is wrong with it ends the
 * communicator. */
#pragma once

#include <stdint.h>

#include "traffic/traffic.h"
#include "wire/wire.h"

struct full;
struct worker;

int full_on_flow(struct full *f, struct worker *w, const struct wire_hdr *h, const void *body);
int full_on_want(struct full *f, struct worker *w, const struct wire_hdr *h);
/* Where the body of a MESSAGE goes (NULL: nowhere), and whether it may come. Return: 0; 1: hold the
 * link (the worker was refused). */
int full_on_message_header(struct full *f, struct worker *w, const struct wire_hdr *h,
			   void **ret_body);
int full_on_message(struct full *f, struct worker *w, const struct wire_hdr *h);
/* A body that was lent to a link is not needed there any more. */
void full_on_sent(uint64_t cookie);
/* The MESSAGE whose body @w was sending will not come. */
void full_worker_gone(struct worker *w);

/* struct traffic_sink has it; @full, @tag: struct full, struct full_comm. */
void full_send(void *full, void *tag, const struct traffic_message *m);
