/* See root.h. NCCL's root answers a rank when it knows the next one's address. Ours is our own, so
 * the answer goes out at once. With several ids (ncclCommInitRankScalable) each is a root for a
 * part of the ranks, and the first rank of the next part checks in once more, so that the last of a
 * part can be told of it: not needed here. */
#include "bootstrap/root.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bootstrap/ring.h"

static int root_ids(struct bootstrap_comm *comm, uint32_t n_roots, uint8_t *ret_ids,
		    struct err *err)
{
	uint8_t address[NCCL_ADDRESS_BYTES];
	struct bootstrap *all = comm->all;
	int r = all->sink->port(all->ctx, PORT_ROOT, address, err);

	if (r < 0)
		return r;
	comm->magics = calloc(n_roots, sizeof(*comm->magics));
	if (!comm->magics)
		return err_set(err, ENOMEM, "no memory for %u ids", n_roots);
	memset(ret_ids, 0, (size_t)n_roots * NCCL_ID_BYTES);
	for (uint32_t i = 0; i < n_roots; i++, ret_ids += NCCL_ID_BYTES) {
		r = all->magic(all->ctx, &comm->magics[i]);
		if (r < 0)
			return err_set(err, -r, "no random number for a communicator's id");
		record_set_u64(ret_ids, comm->records->id_magic, comm->magics[i]);
		memcpy(ret_ids + comm->records->id_address.at, address, sizeof(address));
	}
	comm->n_roots = n_roots;
	comm->has_magic = true;
	return 0;
}

/* The first rank of a root's part; of the root behind the last: n_ranks. As NCCL parts them. */
static uint32_t root_first(const struct bootstrap_comm *comm, uint32_t root)
{
	uint32_t n = comm_ranks(comm), more = n % comm->n_roots;

	return root * (n / comm->n_roots) + (root < more ? root : more);
}

/* --- the answer -------------------------------------------------------------------- */

static void answer_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	(void)bytes;
	comm_fail(c->comm, "rank %u has sent %zu bytes where the root answers",
		  c->comm->members[c->member].rank, n);
}

/* A rank closes the connection when it has read the answer. One that died before has it closed by
 * the system, which tells so: who only sends does not hear of it. */
static void answer_ended(struct bootstrap_conn *c, int error)
{
	char text[128];

	if (!error && !conn_queued(c)) {
		conn_hang_up(c, false);
		return;
	}
	comm_fail(c->comm, "the root's answer did not reach rank %u%s",
		  c->comm->members[c->member].rank, conn_error_text(error, text, sizeof(text)));
}

static const struct conn_kind answer_kind = {.name = "root's answer",
					     .in = answer_in,
					     .ended = answer_ended};

static void answer(struct bootstrap_comm *comm, struct member *m, uint64_t magic,
		   const uint8_t *root_address)
{
	uint8_t *next CLEANUP(freep) = calloc(1, comm->records->next_bytes);
	struct bootstrap_conn *c;

	if (!next) {
		comm_no_memory(comm);
		return;
	}
	if (ring_expect(comm, m, next) < 0)
		return;
	c = comm_dial_begin(comm, &answer_kind, m, magic);
	if (!c)
		return;
	if (conn_put_frame(c, next, comm->records->next_bytes) < 0)
		comm_no_memory(comm);
	comm_dial(comm, c, root_address);
}

/* --- the check-in ------------------------------------------------------------------ */

static bool has_field(struct record_field f)
{
	return f.bytes > 0;
}

/* Does it say of the communicator what its id does? */
static bool check_in_fits(struct bootstrap_conn *c, const uint8_t *record)
{
	const struct record_check_in *f = &c->comm->records->check_in;
	struct bootstrap_comm *comm = c->comm;
	int32_t rank = record_int(record, f->rank), n_ranks = record_int(record, f->n_ranks);

	if (n_ranks < 0 || (uint32_t)n_ranks != comm_ranks(comm)) {
		comm_fail(
			comm,
			"rank %d checks in to a communicator of %d ranks, which this id has %u of: ncclCommInitRank() takes "
			"the number of all ranks, virtual ones among them",
			rank, n_ranks, comm_ranks(comm));
		return false;
	}
	if (has_field(f->n_roots) && (uint32_t)record_int(record, f->n_roots) != comm->n_roots) {
		comm_fail(
			comm,
			"rank %d checks in with %d ids, made were %u: all ranks take the same ids",
			rank, record_int(record, f->n_roots), comm->n_roots);
		return false;
	}
	if (has_field(f->root) && (uint32_t)record_int(record, f->root) != c->root) {
		comm_fail(
			comm,
			"rank %d checks in at root %u for root %d: all ranks take the ids in the same order",
			rank, c->root, record_int(record, f->root));
		return false;
	}
	return true;
}

static void check_in(struct bootstrap_conn *c, const uint8_t *record)
{
	const struct record_check_in *f = &c->comm->records->check_in;
	struct bootstrap_comm *comm = c->comm;
	int32_t rank = record_int(record, f->rank);
	uint32_t first = root_first(comm, c->root), last = root_first(comm, c->root + 1);
	struct member *m;

	if (!check_in_fits(c, record))
		return;
	if (comm->n_roots > 1 && rank >= 0 && (uint32_t)rank == last &&
	    comm_real_member(comm, last % comm_ranks(comm)))
		return;
	if (rank < 0 || (uint32_t)rank < first || (uint32_t)rank >= last) {
		comm_fail(comm, "rank %d checks in at root %u, which has ranks %u to %u", rank,
			  c->root, first, last - 1);
		return;
	}
	m = comm_real_member(comm, rank);
	if (!m) {
		comm_fail(comm,
			  "rank %d checks in, which is a virtual rank: its template is rank %u",
			  rank, comm->template[rank]);
		return;
	}
	if (m->has_checked_in) {
		comm_fail(comm, "rank %d checks in twice: have two processes the same rank?", rank);
		return;
	}
	m->has_checked_in = true;
	memcpy(m->ring_address, record + f->ring_address.at, NCCL_ADDRESS_BYTES);
	answer(comm, m, comm->magics[c->root], record + f->root_address.at);
}

static void check_in_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	struct bootstrap_comm *comm = c->comm;
	uint16_t want = comm->records->check_in.bytes;
	int r = frame_take(&c->frame, want, &bytes, &n);

	if (r == 0)
		return;
	if (r == -ENOMEM) {
		comm_no_memory(comm);
	} else if (r < 0 || c->frame.size != want) {
		comm_fail(
			comm,
			"a rank checks in with %d bytes, NCCL %s does with %u: have the ranks another version of NCCL?",
			c->frame.size, comm->records->name, want);
	} else {
		check_in(c, c->frame.bytes);
		conn_hang_up(c, false);
	}
}

static void check_in_ended(struct bootstrap_conn *c, int error)
{
	char text[128];

	comm_fail(c->comm, "a rank has closed its check-in at the root before its end%s",
		  conn_error_text(error, text, sizeof(text)));
}

static const struct conn_kind check_in_kind = {.name = "check-in",
					       .in = check_in_in,
					       .ended = check_in_ended};

void root_begin(struct bootstrap_conn *c)
{
	c->kind = &check_in_kind;
}

int bootstrap_comm_make(struct bootstrap *b, const struct nccl_records *records, uint32_t n_ranks,
			const uint32_t *node, const uint32_t *template, uint32_t n_roots,
			uint8_t *ret_ids, struct bootstrap_comm **ret, struct err *err)
{
	uint32_t *own_node CLEANUP(freep) = NULL, *own_template CLEANUP(freep) = NULL;
	struct bootstrap_comm *comm;
	int r;

	if (n_ranks == 0 || n_ranks > INT32_MAX || n_roots == 0 || n_roots > n_ranks)
		return err_set(
			err, EINVAL,
			"a communicator of %u ranks and %u ids: it has 1 rank or more, and an id for each at most",
			n_ranks, n_roots);
	if (n_roots > 1 && !has_field(records->check_in.n_roots))
		return err_set(err, EINVAL, "%u ids for one communicator: NCCL %s takes one",
			       n_roots, records->name);
	own_node = malloc(n_ranks * sizeof(*node));
	own_template = malloc(n_ranks * sizeof(*template));
	if (!own_node || !own_template)
		return err_set(err, ENOMEM, "no memory for a communicator of %u ranks", n_ranks);
	memcpy(own_node, node, n_ranks * sizeof(*node));
	memcpy(own_template, template, n_ranks * sizeof(*template));
	r = comm_make(b, records, n_ranks, own_node, own_template, &comm, err);
	if (r < 0)
		return r;
	own_node = own_template = NULL;
	r = root_ids(comm, n_roots, ret_ids, err);
	if (r < 0) {
		bootstrap_comm_free(comm);
		return r;
	}
	*ret = comm;
	return 0;
}
