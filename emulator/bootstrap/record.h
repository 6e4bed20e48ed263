/* What is in the records of an all-gather, and what a real rank gets to see of them. */
#pragma once

#include "bootstrap/comm.h"

const char *record_name(enum gather_kind kind);
/* What an all-gather of @bytes a rank is, the next of @comm: sets kind and contact of @ret, and
 * @comm's stage. Return: 0; -EINVAL with the sentence. */
int record_kind(struct bootstrap_comm *comm, int32_t bytes, struct gather *ret, char *sentence,
		size_t size);
/* All real ranks have told their contacts: where messages go. @comm may fail. */
void record_contacts(struct bootstrap_comm *comm, const struct gather *g);
/* The record of rank @slice as @to gets it, [g->bytes]. Return: 0; -1: @comm has failed. */
int record_make(struct bootstrap_comm *comm, const struct gather *g, const struct member *to,
		uint32_t slice, uint8_t *ret_record);
