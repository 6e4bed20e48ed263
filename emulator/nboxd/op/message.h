/* MESSAGE frames from real ranks: each is checked against the op that it names, counted, and handed
 * to the engine once a run plays it. */
#pragma once

#include "nboxd/op/live.h"
#include "op/table.h"

/* Where the body of a MESSAGE goes (NULL: nowhere), and whether it may come. Return: 0; 1: hold the
 * link (the worker was refused). */
int op_on_message_header(struct live *live, struct worker *w, const struct wire_hdr *h,
			 void **ret_body);
int op_on_message(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body);
