/* A file of Chrome's trace events while it is read: whose events they are, and what is known of its
 * ops until all of it is there. */
#pragma once

#include <stdbool.h>

#include "trace/json-value.h"
#include "trace/trace.h"

/* Events of one process, which are of one rank. What they belong to may be said behind them. */
struct chrome_slot {
	uint32_t pid;  /* a name; TRACE_NONE: a number */
	double number; /* that; NAN: all those that have no slot of their own */
	uint32_t rank; /* of the world; TRACE_NONE: the file's */
	uint32_t host; /* a name; TRACE_NONE: the file's */
	bool is_used;
};

/* A number that the file gives to an op. */
struct chrome_id {
	uint64_t id;
	uint32_t slot, op;
};

struct chrome_ids {
	struct chrome_id *list; /* owned */
	size_t n, size;
};

struct chrome_step {
	uint32_t slot, number;
	double start_ns, end_ns;
};

/* What is launched next on @stream behind the call @id, or that call itself, waits for what was
 * launched last on @on_stream before the call @record. */
struct chrome_wait {
	uint64_t id, record;
	uint32_t slot, stream, on_stream;
	bool is_host;
};

struct chrome {
	struct trace *t;  /* borrowed */
	const char *file; /* borrowed: its name */
	uint32_t first;   /* the file's first op in t */
	bool has_zero;
	double zero_us;          /* what its ops' times count from: its first time */
	uint64_t base_ns;        /* of its times; 0: not said */
	struct json_values info; /* owned: distributedInfo; of none */
	struct chrome_slot *slots;
	struct chrome_step *steps;
	struct chrome_wait *waits;
	size_t n_slots, n_steps, n_waits, slots_size, steps_size, waits_size;
	struct chrome_ids calls;   /* by correlation */
	struct chrome_ids gpu;     /* of the GPU, by their launches' correlation */
	struct chrome_ids numbers; /* by what the file calls them */
	struct chrome_ids after;   /* ops, with the number of one that they waited for */
};

void chrome_deinit(struct chrome *c);
/* Of an event; ops have it as their rank until the file ends. Return: 0; -EINVAL, -EFBIG with the
 * sentence; -ENOMEM. */
int chrome_slot(struct chrome *c, const struct json_value *event, uint32_t *ret, struct err *err);
/* An event that names its process "rank N", as nbox report --trace does: it is that rank's. Return:
 * as chrome_slot(). */
int chrome_name_slot(struct chrome *c, const struct json_value *event, struct err *err);
/* When the event is. Return: 0; -EINVAL with the sentence. */
int chrome_times(struct chrome *c, const struct json_value *event, double *ret_start_ns,
		 double *ret_end_ns, struct err *err);
/* Adds the event's op, which is called @name, and whose kind, stream and slot are set: with its
 * times and what all forms say in args. Return: 0; -EINVAL, -EFBIG with the sentence; -ENOMEM. */
int chrome_add(struct chrome *c, const struct json_value *event, const char *name,
	       struct trace_op *op, uint32_t *ret, struct err *err);
int chrome_add_id(struct chrome_ids *ids, uint64_t id, uint32_t slot, uint32_t op);
int chrome_add_step(struct chrome *c, struct chrome_step step);
int chrome_add_wait(struct chrome *c, struct chrome_wait wait);
/* Of @object's member @name; NULL: @object itself. Return: false: it is no number, 0 or more. */
bool chrome_number(const struct json_value *object, const char *name, uint64_t *ret);
/* So; *ret stays where the member is missing. Return: 0; -EINVAL with the sentence: it is there,
 * and is no number, 0 or more. */
int chrome_count(const struct json_value *object, const char *name, uint64_t *ret, struct err *err);
