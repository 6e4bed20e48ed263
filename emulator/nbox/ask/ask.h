/* What the model of a configuration says of one op of the whole virtual world, all ranks arriving
 * together, without a job: nbox perf, nbox explain. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/open-model.h"
#include "engine/timing.h"
#include "topology/membership.h"

struct ask;

struct answer {
	double ns;         /* with what-ifs */
	double model_ns;   /* without them */
	double bound_ns;   /* no op takes less */
	char bound_at[64]; /* the link that says so; "": not known */
	enum solve_how how;
	bool is_near;          /* the short cut is not exact */
	struct nbox_plan plan; /* the scheduler's; n_lanes is 0 without one */
};

/* One message of a planned op, and its path. */
struct asked_message {
	uint32_t src, dst, lane; /* world ranks */
	uint64_t bytes;
	struct nbox_delay delay;
	double step_ns;
	uint32_t n_sample; /* so many were looked at; 0: each */
	uint32_t n_links;  /* 0: the plan has no messages */
	struct nbox_link links[FABRIC_PATH_MAX];
	char names[FABRIC_PATH_MAX][32];
};

/* @c: finished; borrowed. @models: the folder of the plug-ins. Return: 0; negative errno with the
 * sentence. */
int ask_open(const struct config *c, const char *models, struct ask **ret, struct err *err);
struct ask *ask_close(struct ask *a); /* NULL; takes NULL */
const struct config *ask_config(const struct ask *a);
/* The same, before the first question: "delay model table: ..."; NULL: nothing. */
const char *ask_warning(const struct ask *a);
/* What its scheduler decides by, after the first question; NULL: it has none. */
const char *ask_decided_by(const struct ask *a);
/* "400 GB/s ... between nodes", and how far that may be believed. Return: @buf. */
char *ask_network(const struct ask *a, const struct asked *asked, char *buf, size_t size);

/* Sizes of nccl-tests are of the larger buffer. Return: the bytes of one rank's part where each
 * rank has one, in whole elements; 0: not one for each. */
uint64_t ask_bytes(enum coll_kind kind, uint64_t size, uint32_t elem_bytes, uint32_t n_ranks);
/* The other way. */
uint64_t ask_size(enum coll_kind kind, uint64_t bytes, uint32_t n_ranks);
/* @bytes: count x @elem_bytes, as struct sched has them. COLL_SENDRECV: rank r sends to r + 1 and
 * receives from r - 1; when the last rank has. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int ask_op(struct ask *a, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes, uint32_t root,
	   struct answer *ret, struct err *err);
/* The same of the communicator @m, of which @comm is a number of the caller's, not 0; not of
 * COLL_SENDRECV. */
int ask_op_of(struct ask *a, uint32_t comm, const struct membership *m, enum coll_kind kind,
	      uint64_t bytes, uint32_t elem_bytes, uint32_t root, struct answer *ret,
	      struct err *err);
/* The same of an all-to-all that is not even, as sends and receives of all ranks at once. @bytes:
 * [source * world + destination]; what a rank keeps does not count. */
int ask_matrix(struct ask *a, const uint64_t *bytes, struct answer *ret, struct err *err);
/* The same of the communicator @m: [source * its ranks + destination]. */
int ask_matrix_of(struct ask *a, const struct membership *m, const uint64_t *bytes,
		  struct answer *ret, struct err *err);
/* When each rank is over with that op of the world. @times, ns: in: when it comes. */
int ask_matrix_ends(struct ask *a, const uint64_t *bytes, double *times, struct err *err);
/* The model says what messages take: else that of a matrix is a guess by its bytes. */
bool ask_knows_messages(const struct ask *a);
/* Of that op, the message of the first domain that takes longest. Return: as ask_op(). */
int ask_slowest(struct ask *a, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes,
		struct asked_message *ret, struct err *err);
/* What the scheduler decides of an op of the communicator @m; nothing is played. Return: as
 * ask_op(). */
int ask_plan(struct ask *a, const struct membership *m, enum coll_kind kind, uint64_t bytes,
	     uint32_t elem_bytes, struct nbox_plan *ret, struct err *err);
/* What an op of the communicator @m puts on links; COLL_SENDRECV as above. Return: as ask_op();
 * *ret is the caller's, by usage_unref(). */
struct usage;
int ask_usage(struct ask *a, const struct membership *m, enum coll_kind kind, uint64_t bytes,
	      uint32_t elem_bytes, uint32_t root, struct usage **ret, struct err *err);
/* "nvlstree", "ll128" */
const char *ask_algo_name(uint32_t algo);
const char *ask_proto_name(uint32_t proto);
