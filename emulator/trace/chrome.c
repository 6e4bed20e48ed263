/* See chrome.h. */
#include "trace/chrome.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX (1 << 14)
#define NAME_BYTES_MAX (1 << 16)

void chrome_deinit(struct chrome *c)
{
	json_decref(c->info);
	free(c->slots);
	free(c->steps);
	free(c->waits);
	free(c->calls.list);
	free(c->gpu.list);
	free(c->numbers.list);
	free(c->after.list);
}

bool chrome_number(const json_t *object, const char *name, uint64_t *ret)
{
	const json_t *value = name ? json_object_get(object, name) : object;
	double d = json_number_value(value);

	if (!json_is_number(value) || !(d >= 0 && d < 0x1p63))
		return false;
	*ret = (uint64_t)d;
	return true;
}

/* Return: 0; -ENOMEM. */
static int grow(void **list, size_t n, size_t *size, size_t each)
{
	size_t more = *size ? 2 * *size : 64;
	void *moved = n < *size ? *list : realloc(*list, more * each);

	if (!moved)
		return -ENOMEM;
	*size = n < *size ? *size : more;
	*list = moved;
	return 0;
}

#define ADD(list, n, size, value)                                          \
	({                                                                 \
		void *array_ = (list);                                     \
		int added_ = grow(&array_, (n), &(size), sizeof(*(list))); \
		(list) = array_;                                           \
		if (added_ == 0)                                           \
			(list)[(n)++] = (value);                           \
		added_;                                                    \
	})

int chrome_add_id(struct chrome_ids *ids, uint64_t id, uint32_t slot, uint32_t op)
{
	const struct chrome_id entry = {id, slot, op};

	return ADD(ids->list, ids->n, ids->size, entry);
}

int chrome_add_step(struct chrome *c, struct chrome_step step)
{
	return ADD(c->steps, c->n_steps, c->steps_size, step);
}

int chrome_add_wait(struct chrome *c, struct chrome_wait wait)
{
	return ADD(c->waits, c->n_waits, c->waits_size, wait);
}

/* "node7.rank12": of dPRO, and of what nbox writes. */
static int read_pid(struct chrome *c, const char *pid, struct chrome_slot *slot)
{
	const char *at = strstr(pid, ".rank");
	char host[256];
	unsigned int rank;
	int end = 0;

	if (!at || sscanf(at, ".rank%9u%n", &rank, &end) != 1 || at[end] || at == pid ||
	    (size_t)(at - pid) >= sizeof(host))
		return 0;
	snprintf(host, sizeof(host), "%.*s", (int)(at - pid), pid);
	slot->rank = rank;
	return trace_add_name(c->t, host, &slot->host);
}

/* Return: its number; n_slots: there is none. */
static size_t find_slot(const struct chrome *c, uint32_t pid)
{
	size_t i = 0;

	while (i < c->n_slots && c->slots[i].pid != pid)
		i++;
	return i;
}

/* Return: 0; -EFBIG with the sentence; -ENOMEM. */
static int add_slot(struct chrome *c, struct chrome_slot slot, struct err *err)
{
	if (c->n_slots == SLOTS_MAX)
		return err_set(err, EFBIG, "more than %d processes", SLOTS_MAX);
	return ADD(c->slots, c->n_slots, c->slots_size, slot);
}

/* Return: 0; -ENOMEM. */
static int pid_of(struct chrome *c, const json_t *event, uint32_t *ret)
{
	const json_t *pid = json_object_get(event, "pid");
	char number[32];

	snprintf(number, sizeof(number), "%.0f", json_number_value(pid));
	return trace_add_name(c->t, json_is_string(pid) ? json_string_value(pid) : number, ret);
}

int chrome_name_slot(struct chrome *c, const json_t *event, struct err *err)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(event, "args"), "name"));
	struct chrome_slot slot = {.host = TRACE_NONE};
	int r, end = 0;

	if (!name || sscanf(name, "rank %9u%n", &slot.rank, &end) != 1 || name[end])
		return 0;
	r = pid_of(c, event, &slot.pid);
	return r < 0 || find_slot(c, slot.pid) < c->n_slots ? r : add_slot(c, slot, err);
}

int chrome_slot(struct chrome *c, const json_t *event, uint32_t *ret, struct err *err)
{
	const json_t *pid = json_object_get(event, "pid");
	struct chrome_slot slot = {TRACE_NONE, TRACE_NONE, TRACE_NONE, false};
	size_t i;
	int r = pid_of(c, event, &slot.pid);

	if (r < 0)
		return r;
	i = find_slot(c, slot.pid);
	if (i == c->n_slots && json_is_string(pid)) {
		r = read_pid(c, json_string_value(pid), &slot);
	} else if (i == c->n_slots) {
		slot.pid = TRACE_NONE; /* PyTorch's: a process, and its GPUs */
		i = find_slot(c, slot.pid);
	}
	*ret = (uint32_t)i;
	return r < 0 || i < c->n_slots ? r : add_slot(c, slot, err);
}

int chrome_times(struct chrome *c, const json_t *event, double *ret_start_ns, double *ret_end_ns,
		 struct err *err)
{
	const json_t *ts = json_object_get(event, "ts"), *dur = json_object_get(event, "dur");
	double start = json_number_value(ts), us = json_number_value(dur);

	if (!json_is_number(ts) || !json_is_number(dur))
		return err_set(err, EINVAL, "it has no time (ts and dur, in us)");
	if (!(fabs(start) < 0x1p53))
		return err_set(err, EINVAL, "its time of %g us is none", start);
	if (!(us >= 0))
		return err_set(err, EINVAL, "it lasts %g us", us);
	if (!c->has_zero)
		c->zero_us = floor(start);
	c->has_zero = true;
	*ret_start_ns = (start - c->zero_us) * 1e3;
	*ret_end_ns = *ret_start_ns + us * 1e3;
	return 0;
}

/* What it waited for, by the file's numbers. */
static int add_after(struct chrome *c, const json_t *args, const struct trace_op *op, uint32_t n)
{
	const json_t *waits = json_object_get(args, "waits"), *on;
	uint64_t id;
	size_t i;
	int r = 0;

	if (chrome_number(args, "op", &id))
		r = chrome_add_id(&c->numbers, id, op->rank, n);
	json_array_foreach(waits, i, on) if (r == 0 && json_is_number(on) &&
					     json_number_value(on) >= 0 &&
					     json_number_value(on) < 0x1p53) r =
		chrome_add_id(&c->after, (uint64_t)json_number_value(on), op->rank, n);
	return r;
}

int chrome_add(struct chrome *c, const json_t *event, struct trace_op *op, uint32_t *ret,
	       struct err *err)
{
	const char *name = json_string_value(json_object_get(event, "name"));
	const json_t *args = json_object_get(event, "args");
	uint64_t n;
	int r = chrome_times(c, event, &op->start_ns, &op->end_ns, err);

	if (r == 0 && strlen(name) > NAME_BYTES_MAX)
		r = err_set(err, EFBIG, "its name has more than %d bytes", NAME_BYTES_MAX);
	op->step = chrome_number(args, "step", &n) && n < TRACE_NONE ? (uint32_t)n : TRACE_NONE;
	op->launched_by = TRACE_NONE;
	if (r == 0)
		r = trace_add_name(c->t, name, &op->name);
	if (r == 0)
		r = trace_add_op(c->t, op, ret, err);
	if (r < 0)
		return r;
	c->slots[op->rank].is_used = true;
	return add_after(c, args, op, *ret);
}
