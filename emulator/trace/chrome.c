/* See chrome.h. */
#include "trace/chrome.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX (1 << 14)
#define NAME_BYTES_MAX (1 << 16)

void chrome_deinit(struct chrome *c)
{
	json_values_deinit(&c->info);
	free(c->slots);
	free(c->steps);
	free(c->waits);
	free(c->calls.list);
	free(c->gpu.list);
	free(c->numbers.list);
	free(c->after.list);
}

bool chrome_number(const struct json_value *object, const char *name, uint64_t *ret)
{
	double d = json_value_number(name ? json_value_get(object, name) : object);

	if (!(d >= 0 && d < 0x1p63))
		return false;
	*ret = (uint64_t)d;
	return true;
}

int chrome_count(const struct json_value *object, const char *name, uint64_t *ret, struct err *err)
{
	const struct json_value *v = json_value_get(object, name);
	uint64_t n;

	if (!v || v->mark == 'n' /* null */)
		return 0;
	if (chrome_number(v, NULL, &n) && (double)n == v->number) {
		*ret = n;
		return 0;
	}
	if (isnan(json_value_number(v)))
		return err_set(err, EINVAL, "%s: '%.80s' is no number", name,
			       v->text ? v->text : "");
	return err_set(err, EINVAL, "%s: %.12g is no count", name, json_value_number(v));
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

/* All of @text is a rank's number. */
static bool names_rank(const char *text, unsigned long *ret)
{
	char *end;

	*ret = strtoul(text, &end, 10);
	return isdigit((unsigned char)text[0]) && !*end;
}

/* Return: 0; -EINVAL with the sentence. */
static int check_rank(unsigned long rank, const char *from, struct err *err)
{
	return rank < TRACE_RANKS_MAX
		       ? 0
		       : err_set(err, EINVAL, "'%.80s': ranks are below %d", from, TRACE_RANKS_MAX);
}

/* "node7.rank12": of dPRO, and of what nbox writes. Return: 0; -EINVAL with the sentence; -ENOMEM.
 */
static int read_pid(struct chrome *c, const char *pid, struct chrome_slot *slot, struct err *err)
{
	const char *at = strstr(pid, ".rank");
	unsigned long rank;
	char host[256];

	if (!at || !names_rank(at + 5, &rank) || at == pid || (size_t)(at - pid) >= sizeof(host))
		return 0;
	snprintf(host, sizeof(host), "%.*s", (int)(at - pid), pid);
	slot->rank = (uint32_t)rank;
	return check_rank(rank, pid, err) < 0 ? -EINVAL : trace_add_name(c->t, host, &slot->host);
}

/* Return: its number; n_slots: there is none. */
static size_t find_slot(const struct chrome *c, uint32_t pid, double number)
{
	size_t i = 0;

	while (i < c->n_slots &&
	       (c->slots[i].pid != pid ||
		(c->slots[i].number != number && !(isnan(c->slots[i].number) && isnan(number)))))
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

int chrome_name_slot(struct chrome *c, const struct json_value *event, struct err *err)
{
	const char *name = json_value_text(json_value_get(json_value_get(event, "args"), "name"));
	struct chrome_slot slot = {.pid = TRACE_NONE,
				   .number = json_value_number(json_value_get(event, "pid")),
				   .host = TRACE_NONE};
	unsigned long rank;

	if (!name || strncmp(name, "rank ", 5) != 0 || !names_rank(name + 5, &rank) ||
	    isnan(slot.number) || find_slot(c, TRACE_NONE, slot.number) < c->n_slots)
		return 0;
	slot.rank = (uint32_t)rank;
	return check_rank(rank, name, err) < 0 ? -EINVAL : add_slot(c, slot, err);
}

int chrome_slot(struct chrome *c, const struct json_value *event, uint32_t *ret, struct err *err)
{
	const struct json_value *pid = json_value_get(event, "pid");
	struct chrome_slot slot = {TRACE_NONE, json_value_number(pid), TRACE_NONE, TRACE_NONE,
				   false};
	const char *text = json_value_text(pid);
	int r = text ? trace_add_name(c->t, text, &slot.pid) : 0;
	size_t i;

	if (r < 0)
		return r;
	i = find_slot(c, slot.pid, slot.number);
	if (i == c->n_slots && text) {
		r = read_pid(c, text, &slot, err);
	} else if (i == c->n_slots) {
		slot.number = NAN; /* PyTorch's: a process, and its GPUs */
		i = find_slot(c, TRACE_NONE, NAN);
	}
	*ret = (uint32_t)i;
	return r < 0 || i < c->n_slots ? r : add_slot(c, slot, err);
}

int chrome_times(struct chrome *c, const struct json_value *event, double *ret_start_ns,
		 double *ret_end_ns, struct err *err)
{
	double start = json_value_number(json_value_get(event, "ts")),
	       us = json_value_number(json_value_get(event, "dur"));

	if (isnan(start) || isnan(us))
		return err_set(err, EINVAL, "it has no time (ts and dur, numbers, in us)");
	if (!(fabs(start) < 0x1p53))
		return err_set(err, EINVAL, "its time of %g us is none", start);
	if (!(us >= 0))
		return err_set(err, EINVAL, "it lasts %g us", us);
	if (!c->has_zero)
		c->zero_us = floor(start);
	c->has_zero = true;
	/* Whole ones, as profilers count: what begins when something ends does not begin before
	 * that. */
	*ret_start_ns = rint((start - c->zero_us) * 1e3);
	*ret_end_ns = *ret_start_ns + rint(us * 1e3);
	return 0;
}

/* What it waited for, by the file's numbers. Return: 0; -EINVAL with the sentence; -ENOMEM. */
static int add_after(struct chrome *c, const struct json_value *args, const struct trace_op *op,
		     uint32_t n, struct err *err)
{
	const struct json_value *waits = json_value_get(args, "waits"), *on = NULL;
	uint64_t id;
	int r = 0;

	if (chrome_number(args, "op", &id))
		r = chrome_add_id(&c->numbers, id, op->rank, n);
	while (r == 0 && (on = json_value_next(waits, on)) != NULL)
		if (chrome_number(on, NULL, &id))
			r = chrome_add_id(&c->after, id, op->rank, n);
		else
			return err_set(err, EINVAL, "it waits for what has no number of an op");
	return r;
}

int chrome_add(struct chrome *c, const struct json_value *event, const char *name,
	       struct trace_op *op, uint32_t *ret, struct err *err)
{
	const struct json_value *args = json_value_get(event, "args");
	uint64_t step = UINT64_MAX; /* TRACE_NONE */
	int r = chrome_times(c, event, &op->start_ns, &op->end_ns, err);

	if (r == 0 && strlen(name) > NAME_BYTES_MAX)
		r = err_set(err, EFBIG, "its name has more than %d bytes", NAME_BYTES_MAX);
	if (r == 0)
		r = chrome_count(args, "step", &step, err);
	if (r == 0 && step >= TRACE_NONE && step != UINT64_MAX)
		r = err_set(err, EINVAL, "step: %.12g is too large", (double)step);
	op->step = (uint32_t)step;
	op->launched_by = TRACE_NONE;
	if (r == 0)
		r = trace_add_name(c->t, name, &op->name);
	if (r == 0)
		r = trace_add_op(c->t, op, ret, err);
	if (r < 0)
		return r;
	c->slots[op->rank].is_used = true;
	return add_after(c, args, op, *ret, err);
}
