/* See ways.h. */
#include "nbox/report/ways.h"

#include "wire/wire.h"

bool report_is_full(const struct record_header *h)
{
	return h->nccl == NCCL_FULL;
}

const char *report_way(const struct record_header *h)
{
	if (!report_is_full(h))
		return "gate: nbox's decisions and messages, times by the model";
	if (h->retimed_of[0])
		return "full: NCCL's own decisions and messages in the run; times anew by the model";
	return "full: NCCL's own decisions and messages, times by the model";
}

/* In which ranks get what others have, as it is. */
static bool has_copies(const struct report *r)
{
	return r->kinds[COLL_ALLGATHER].n_ops || r->kinds[COLL_ALLTOALL].n_ops ||
	       r->kinds[COLL_GATHER].n_ops || r->kinds[COLL_SENDRECV].n_ops;
}

char *report_values(const struct report *r, char *buf, size_t size)
{
	const struct record_header *h = &r->header;
	const char *text = "reductions are right, as with the gate";

	if (!report_is_full(h))
		text = "";
	else if (h->exchange != EXCHANGE_PAYLOAD)
		text = "NCCL's messages had no bytes: reductions are wrong, and the loss means nothing";
	else if (h->data == DATA_NONE)
		text = "values are not cared for, and the loss means nothing";
	else if (h->data == DATA_IDENTITY && has_copies(r))
		text = "what virtual ranks send comes as zeros";
	else if (r->kinds[COLL_SENDRECV].n_ops)
		text = "reductions are right, as with the gate; receives that no template's send mirrors are zeros";
	snprintf(buf, size, "%s", text);
	return buf;
}
