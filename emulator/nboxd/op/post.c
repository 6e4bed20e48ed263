/* See post.h. */
#include "nboxd/op/post.h"

#include <errno.h>

struct comm_member *post_find_member(struct live *live, struct worker *w, const struct wire_hdr *h,
				     struct comm **ret)
{
	struct comm_member *m = comm_frame_member(live->comms, w, h, ret);

	return m && !(*ret)->is_dead ? m : NULL;
}

struct post *post_find(struct live *live, struct worker *w, const struct wire_hdr *h)
{
	struct comm *c = NULL;
	struct comm_member *m = post_find_member(live, w, h, &c);
	struct op *op = m ? op_find(c, h->seq, (size_t)(m - c->real)) : NULL;
	char name[OP_NAME_MAX];

	if (m && !op)
		worker_refuse(w, EPROTO, "%s for %s, which is not open", wire_type_name(h->type),
			      op_name(h->seq, h->rank, h->comm, name, sizeof(name)));
	return op ? op_post(op, m) : NULL;
}
