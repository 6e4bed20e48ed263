/* Checks the bodies of control frames, so that their receivers need not: sizes, inner counts,
 * terminated strings, ranges. It knows no communicator: whether a rank is a member or an op
 * exists is its receiver's question.
 *
 * A body comes from another process and may lie unaligned: memcpy() brings it here first. */
#include "wire/wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SPLIT_NOCOLOR (-1)

typedef int (*body_fn)(const struct wire_hdr *h, const void *body, struct err *err);

static int bad(const struct wire_hdr *h, struct err *err, const char *what,
	       unsigned long long value)
{
	return err_set(err, EPROTO, "%s frame: %s is wrong (%llu)", wire_type_name(h->type), what,
		       value);
}

static int size_wrong(const struct wire_hdr *h, uint64_t want, struct err *err)
{
	return err_set(err, EPROTO, "%s frame has a body of %llu bytes instead of %llu",
		       wire_type_name(h->type), (unsigned long long)h->body_bytes,
		       (unsigned long long)want);
}

static int check_any(const struct wire_hdr *h, const void *body, struct err *err)
{
	(void)h;
	(void)body;
	(void)err;
	return 0;
}

static int check_hello(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_hello m;

	memcpy(&m, body, sizeof(m));
	if (m.role >= WIRE_ROLES)
		return bad(h, err, "role", m.role);
	if (!memchr(m.host, 0, sizeof(m.host)))
		return err_set(err, EPROTO, "HELLO frame: the host name has no end");
	return 0;
}

static int check_welcome(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_welcome m;

	memcpy(&m, body, sizeof(m));
	if (m.world == 0)
		return bad(h, err, "world", m.world);
	if (m.n_real > m.world)
		return bad(h, err, "n_real", m.n_real);
	if (m.exchange > EXCHANGE_PAYLOAD)
		return bad(h, err, "exchange", m.exchange);
	if (m.data > DATA_NONE)
		return bad(h, err, "data", m.data);
	if (m.same_clock > 1)
		return bad(h, err, "same_clock", m.same_clock);
	if (m.wants_groups > 1)
		return bad(h, err, "wants_groups", m.wants_groups);
	if (m.nccl > NCCL_FULL)
		return bad(h, err, "nccl", m.nccl);
	if (m.tunes > 1)
		return bad(h, err, "tunes", m.tunes);
	return 0;
}

static int check_classes(const struct wire_hdr *h, const void *body, struct err *err)
{
	(void)body;
	return h->body_bytes % sizeof(uint32_t) ? size_wrong(h, h->body_bytes & ~UINT64_C(3), err)
						: 0;
}

static int check_comm_init(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_comm_init m;

	if (h->body_bytes < sizeof(m))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	if (h->body_bytes != sizeof(m) &&
	    h->body_bytes != sizeof(m) + (uint64_t)m.n_ranks * sizeof(uint32_t))
		return size_wrong(h, sizeof(m), err);
	if (m.n_ranks == 0)
		return bad(h, err, "n_ranks", m.n_ranks);
	if (m.rank >= m.n_ranks)
		return bad(h, err, "rank", m.rank);
	return 0;
}

/* @list: the world ranks, or NULL. */
static int check_members(const struct wire_hdr *h, const struct wire_comm_ready *m,
			 const void *members, const char *list, struct err *err)
{
	struct wire_member member;
	uint32_t i, least = 0, world;
	int is_in = 0;

	for (i = 0; i < m->n_real; i++) {
		memcpy(&member, (const char *)members + (size_t)i * sizeof(member), sizeof(member));
		if (member.rank < least || member.rank >= m->n_ranks)
			return bad(h, err, "rank of a member", member.rank);
		world = m->base + member.rank * m->stride;
		if (list)
			memcpy(&world, list + (size_t)member.rank * sizeof(world), sizeof(world));
		if (member.world_rank != world)
			return bad(h, err, "world rank of a member", member.world_rank);
		least = member.rank + 1;
		is_in |= member.rank == m->rank;
	}
	if (!is_in)
		return err_set(err, EPROTO,
			       "COMM_READY frame: rank %u is not among its own real members",
			       m->rank);
	return 0;
}

static int check_comm_ready(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_comm_ready m;
	uint64_t want;
	size_t i;

	if (h->body_bytes < sizeof(m))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	want = sizeof(m) + (uint64_t)m.n_real * sizeof(struct wire_member);
	if (h->body_bytes != want && h->body_bytes != want + (uint64_t)m.n_ranks * sizeof(uint32_t))
		return size_wrong(h, want, err);
	if (m.n_ranks == 0) /* color NOCOLOR: no communicator, nothing to say of it */
		return m.n_real ? bad(h, err, "n_real", m.n_real) : 0;
	if (m.rank >= m.n_ranks)
		return bad(h, err, "rank", m.rank);
	if (m.n_real == 0 || m.n_real > m.n_ranks)
		return bad(h, err, "n_real", m.n_real);
	if (m.n_ranks > WIRE_WORLD_MAX)
		return bad(h, err, "n_ranks", m.n_ranks);
	if (m.gpus_per_node == 0)
		return bad(h, err, "gpus_per_node", m.gpus_per_node);
	if (m.base + (uint64_t)m.stride * (m.n_ranks - 1) > UINT32_MAX)
		return bad(h, err, "stride", m.stride);
	if (m.is_guess > 1)
		return bad(h, err, "is_guess", m.is_guess);
	if (m.ranks_per_node == 0 || m.n_ranks % m.ranks_per_node)
		return bad(h, err, "ranks_per_node", m.ranks_per_node);
	if (m.channels == 0 || m.channels > WIRE_CHANNELS_MAX)
		return bad(h, err, "channels", m.channels);
	if (m.chunk_bytes > WIRE_BODY_MAX)
		return bad(h, err, "chunk_bytes", m.chunk_bytes);
	for (i = 0; i < WIRE_KINDS; i++) {
		if (m.algo[i] >= WIRE_ALGOS)
			return bad(h, err, "algo", m.algo[i]);
		if (m.data[i] > DATA_NONE)
			return bad(h, err, "data", m.data[i]);
	}
	return check_members(h, &m, (const char *)body + sizeof(m),
			     h->body_bytes == want ? NULL : (const char *)body + want, err);
}

static int check_comm_split(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_comm_split m;

	if (h->body_bytes < sizeof(m) || (h->body_bytes - sizeof(m)) % sizeof(uint32_t))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	if (m.parent != h->comm)
		return bad(h, err, "parent", m.parent);
	if (m.color < SPLIT_NOCOLOR)
		return err_set(err, EPROTO, "COMM_SPLIT frame: color is wrong (%d)", m.color);
	return 0;
}

static int check_comm_shrink(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_comm_shrink m;
	uint64_t want;

	if (h->body_bytes < sizeof(m))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	want = sizeof(m) + (uint64_t)m.n_excluded * sizeof(uint32_t);
	if (h->body_bytes != want)
		return size_wrong(h, want, err);
	return 0;
}

static int check_deps(const struct wire_hdr *h, const char *deps, uint32_t n, struct err *err)
{
	struct wire_dep dep;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(&dep, deps + (size_t)i * sizeof(dep), sizeof(dep));
		if (dep.name == 0)
			return bad(h, err, "name of what it waits for", dep.name);
		if (dep.is_same_stream > 1)
			return bad(h, err, "is_same_stream", dep.is_same_stream);
	}
	return 0;
}

static int check_point(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_point m;
	uint64_t want;

	if (h->body_bytes < sizeof(m))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	want = sizeof(m) + (uint64_t)m.n_deps * sizeof(struct wire_dep);
	if (h->body_bytes != want)
		return size_wrong(h, want, err);
	if (m.name == 0)
		return bad(h, err, "name", m.name);
	if (m.kind >= WIRE_POINT_KINDS)
		return bad(h, err, "kind", m.kind);
	if (m.n_deps > WIRE_DEPS_MAX)
		return bad(h, err, "n_deps", m.n_deps);
	return check_deps(h, (const char *)body + sizeof(m), m.n_deps, err);
}

static int check_took_of(const struct wire_hdr *h, const struct wire_took *m, struct err *err)
{
	if (m->algorithm >= WIRE_NCCL_DIRECT)
		return bad(h, err, "algorithm", m->algorithm);
	if (m->protocol >= WIRE_NCCL_PROTOCOLS)
		return bad(h, err, "protocol", m->protocol);
	if (m->n_channels > WIRE_CHANNELS_MAX || (m->n_channels && h->seq & WIRE_SEQ_P2P))
		return bad(h, err, "n_channels", m->n_channels);
	return 0;
}

static int check_took(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_took m;

	memcpy(&m, body, sizeof(m));
	return check_took_of(h, &m, err);
}

static int check_tune(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_tune m;

	memcpy(&m, body, sizeof(m));
	if (m.n_ranks < 2 || m.n_ranks > WIRE_WORLD_MAX)
		return bad(h, err, "n_ranks", m.n_ranks);
	if (m.n_nodes == 0 || m.n_nodes > m.n_ranks)
		return bad(h, err, "n_nodes", m.n_nodes);
	if (m.kind >= WIRE_KINDS_TUNED)
		return bad(h, err, "kind", m.kind);
	if (m.bytes > WIRE_COUNT_MAX * WIRE_WORLD_MAX)
		return bad(h, err, "bytes", m.bytes);
	if (m.n_of_comm > WIRE_CHANNELS_MAX)
		return bad(h, err, "n_of_comm", m.n_of_comm);
	return check_took_of(h, &m.took, err);
}

static int check_arrive(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_arrive m;
	struct wire_p2p p2p;
	uint64_t want;
	uint32_t i;

	if (h->body_bytes < sizeof(m))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	want = sizeof(m) + (uint64_t)m.n_p2p * sizeof(p2p) +
	       (uint64_t)m.n_deps * sizeof(struct wire_dep);
	if (h->body_bytes != want)
		return size_wrong(h, want, err);
	if (m.kind >= WIRE_KINDS)
		return bad(h, err, "kind", m.kind);
	if (m.dtype >= WIRE_DTYPES)
		return bad(h, err, "dtype", m.dtype);
	if (m.count > WIRE_COUNT_MAX)
		return bad(h, err, "count", m.count);
	if ((m.kind == WIRE_KIND_SENDRECV) != !!(h->seq & WIRE_SEQ_P2P))
		return err_set(err, EPROTO, "ARRIVE frame: kind %u with a number of %s", m.kind,
			       h->seq & WIRE_SEQ_P2P ? "point-to-point ops" : "collectives");
	if (m.n_p2p && m.kind != WIRE_KIND_SENDRECV)
		return bad(h, err, "n_p2p", m.n_p2p);
	if (check_took_of(h, &m.took, err))
		return -EPROTO;
	for (i = 0; i < m.n_p2p; i++) {
		memcpy(&p2p, (const char *)body + sizeof(m) + (size_t)i * sizeof(p2p), sizeof(p2p));
		if (p2p.is_send > 1)
			return bad(h, err, "is_send", p2p.is_send);
		if (p2p.bytes > WIRE_COUNT_MAX)
			return bad(h, err, "bytes of a point-to-point call", p2p.bytes);
	}
	if (m.n_deps > WIRE_DEPS_MAX)
		return bad(h, err, "n_deps", m.n_deps);
	return check_deps(h,
			  (const char *)body + sizeof(m) +
				  (size_t)m.n_p2p * sizeof(struct wire_p2p),
			  m.n_deps, err);
}

static int check_release(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_release m;

	memcpy(&m, body, sizeof(m));
	if (m.end_ns < m.start_ns)
		return bad(h, err, "end_ns", m.end_ns);
	return 0;
}

static int check_flow(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_flow m;

	memcpy(&m, body, sizeof(m));
	if (m.is_send > 1)
		return bad(h, err, "is_send", m.is_send);
	if (m.algorithm >= WIRE_NCCL_ALGORITHMS)
		return bad(h, err, "algorithm", m.algorithm);
	if (m.protocol >= WIRE_NCCL_PROTOCOLS)
		return bad(h, err, "protocol", m.protocol);
	if (h->lane >= WIRE_CHANNELS_MAX)
		return bad(h, err, "lane", h->lane);
	if (m.n_messages == 0 || m.n_messages > WIRE_FLOW_MESSAGES_MAX)
		return bad(h, err, "n_messages", m.n_messages);
	if (m.message_bytes > WIRE_NCCL_MESSAGE_MAX)
		return bad(h, err, "message_bytes", m.message_bytes);
	return 0;
}

static int check_text(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_text m;

	memcpy(&m, body, sizeof(m));
	if (m.code <= 0 || m.code > 4095)
		return err_set(err, EPROTO, "%s frame: code is wrong (%d)", wire_type_name(h->type),
			       m.code);
	if (!memchr(m.text, 0, sizeof(m.text)))
		return err_set(err, EPROTO, "%s frame: the text has no end",
			       wire_type_name(h->type));
	return 0;
}

/* Empty, or a text that may be terminated but has no other zero byte. */
static int check_status(const struct wire_hdr *h, const void *body, struct err *err)
{
	const char *zero = h->body_bytes ? memchr(body, 0, h->body_bytes) : NULL;

	if (zero && zero != (const char *)body + h->body_bytes - 1)
		return err_set(err, EPROTO, "STATUS frame: the text has a zero byte inside");
	return 0;
}

static int check_job(const struct wire_hdr *h, const void *body, struct err *err)
{
	if (!h->body_bytes || ((const char *)body)[h->body_bytes - 1])
		return err_set(err, EPROTO, "JOB frame: the last text has no end");
	return 0;
}

static int check_group(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_group m;

	if (h->body_bytes < sizeof(m))
		return size_wrong(h, sizeof(m), err);
	memcpy(&m, body, sizeof(m));
	if (!m.name[0] || !memchr(m.name, 0, sizeof(m.name)))
		return err_set(err, EPROTO, "GROUP frame: the name is empty or has no end");
	if (m.n_ranks == 0)
		return bad(h, err, "n_ranks", m.n_ranks);
	if (h->body_bytes != sizeof(m) + (uint64_t)m.n_ranks * sizeof(uint32_t))
		return size_wrong(h, sizeof(m) + (uint64_t)m.n_ranks * sizeof(uint32_t), err);
	return 0;
}

static int check_conn(const struct wire_hdr *h, const void *body, struct err *err)
{
	struct wire_conn m;

	memcpy(&m, body, sizeof(m));
	if (m.src >= m.n_ranks)
		return bad(h, err, "src", m.src);
	if (m.dst >= m.n_ranks)
		return bad(h, err, "dst", m.dst);
	if (m.lane > UINT16_MAX)
		return bad(h, err, "lane", m.lane);
	return 0;
}

#define SIZE_ANY UINT64_MAX

/* A type's exact body size, or SIZE_ANY when check() looks at it. */
static const struct body_rule {
	uint64_t bytes;
	body_fn check;
} rules[WIRE_TYPE_END] = {
	[WIRE_HELLO] = {sizeof(struct wire_hello), check_hello},
	[WIRE_WELCOME] = {sizeof(struct wire_welcome), check_welcome},
	[WIRE_COMM_INIT] = {SIZE_ANY, check_comm_init},
	[WIRE_COMM_READY] = {SIZE_ANY, check_comm_ready},
	[WIRE_COMM_SPLIT] = {SIZE_ANY, check_comm_split},
	[WIRE_COMM_SHRINK] = {SIZE_ANY, check_comm_shrink},
	[WIRE_COMM_FREE] = {0, check_any},
	[WIRE_LOCAL_ID] = {WIRE_ID_BYTES, check_any},
	[WIRE_ARRIVE] = {SIZE_ANY, check_arrive},
	[WIRE_MESSAGE] = {SIZE_ANY, check_any},
	[WIRE_RELEASE] = {sizeof(struct wire_release), check_release},
	[WIRE_DONE] = {sizeof(struct wire_done), check_any},
	[WIRE_ABORT] = {sizeof(struct wire_text), check_text},
	[WIRE_ERROR] = {sizeof(struct wire_text), check_text},
	[WIRE_PING] = {sizeof(struct wire_ping), check_any},
	[WIRE_STATUS] = {SIZE_ANY, check_status},
	[WIRE_BYE] = {0, check_any},
	[WIRE_CONN] = {sizeof(struct wire_conn), check_conn},
	[WIRE_BOOT] = {SIZE_ANY, check_any},
	[WIRE_GROUP] = {SIZE_ANY, check_group},
	[WIRE_NOTE] = {sizeof(struct wire_text), check_text},
	[WIRE_MEET] = {0, check_any},
	[WIRE_JOB] = {SIZE_ANY, check_job},
	[WIRE_POINT] = {SIZE_ANY, check_point},
	[WIRE_MOVE] = {sizeof(struct wire_move), check_any},
	[WIRE_CLASSES] = {SIZE_ANY, check_classes},
	[WIRE_FLOW] = {sizeof(struct wire_flow), check_flow},
	[WIRE_WANT] = {0, check_any},
	[WIRE_TOOK] = {sizeof(struct wire_took), check_took},
	[WIRE_TUNE] = {sizeof(struct wire_tune), check_tune},
};

int wire_body_check(const struct wire_hdr *h, const void *body, struct err *err)
{
	const struct body_rule *rule;
	int r;

	r = wire_hdr_check(h, err);
	if (r)
		return r;
	rule = &rules[h->type];
	if (rule->bytes != SIZE_ANY && h->body_bytes != rule->bytes)
		return size_wrong(h, rule->bytes, err);
	if (h->body_bytes && !body && rule->check != check_any)
		return err_set(err, EPROTO, "%s frame without its body", wire_type_name(h->type));
	return rule->check(h, body, err);
}
