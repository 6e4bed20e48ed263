/* See launches.h. */
#include "nbox/kernels/launches.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "kernels/rule.h"
#include "trace/events.h"

#define LAUNCHES_MAX (1 << 22)
#define NAME_MAX_BYTES (1 << 16)

/* Return: its key in @names; NULL: no memory. */
static const char *intern(json_t *names, const char *name)
{
	if (!json_object_get(names, name) && json_object_set_new(names, name, json_true()) < 0)
		return NULL;
	return json_object_iter_key(json_object_iter_at(names, name));
}

static int take_kernel(struct launches *t, const char *name, double us, double op, struct err *err)
{
	if (t->n == LAUNCHES_MAX)
		return err_set(err, EFBIG, "more than %d kernels: profile fewer steps",
			       LAUNCHES_MAX);
	if (!(us >= 0 && us < LAUNCH_MAX_US))
		return err_set(err, EINVAL, "a kernel of %g us: that is no time below a minute",
			       us);
	if (t->n == t->capacity) {
		size_t capacity = 2 * t->capacity + 256;
		struct launch *more = realloc(t->list, capacity * sizeof(struct launch));

		if (!more)
			return -ENOMEM;
		t->list = more;
		t->capacity = capacity;
	}
	t->list[t->n] = (struct launch){intern(t->names, name), us + 0.0 /* no -0 */, op};
	return t->list[t->n].name ? (t->n++, 0) : -ENOMEM;
}

/* The @i-th one of a list, from 0 on. NULL: there is none. */
static const struct json_value *value_at(const struct json_value *list, size_t i)
{
	const struct json_value *v = json_value_next(list, NULL);

	while (v && i--)
		v = json_value_next(list, v);
	return v;
}

/* Dimension @i of tensor @tensor of "Input Dims"; 0: there is none. */
static uint64_t dimension(const struct json_value *dims, size_t tensor, size_t i)
{
	double d = json_value_number(value_at(value_at(dims, tensor), i));

	return d >= 1 && d < 0x1p40 ? (uint64_t)d : 0;
}

/* How PyTorch calls types, and NULL behind them. */
static const struct {
	const char *name;
	enum kernel_type type;
} types[] = {
	{"float", KERNEL_F32},
	{"double", KERNEL_F64},
	{"c10::Half", KERNEL_F16},
	{"c10::BFloat16", KERNEL_BF16},
};

/* PyTorch's products of matrices: which of their tensors is the first factor; matrices, or lists of
 * them. */
static const struct {
	const char *name;
	size_t tensor, n_dims;
} operators[] = {
	{"aten::mm", 0, 2},
	{"aten::addmm", 1, 2},
	{"aten::bmm", 0, 3},
	{"aten::baddbmm", 1, 3},
};

/* Return: false: it is not said what is multiplied. */
static bool read_product(const struct json_value *args, size_t tensor, size_t n_dims,
			 struct kernel_product *ret)
{
	const struct json_value *dims = json_value_get(args, "Input Dims");
	const char *type = json_value_text(value_at(json_value_get(args, "Input type"), tensor));
	size_t i = 0;

	while (type && i < ARRAY_SIZE(types) && strcmp(types[i].name, type) != 0)
		i++;
	if (!type || i == ARRAY_SIZE(types))
		return false;
	*ret = (struct kernel_product){
		.type = types[i].type,
		.m = dimension(dims, tensor, n_dims - 2),
		.k = dimension(dims, tensor, n_dims - 1),
		.n = dimension(dims, tensor + 1, n_dims - 1),
		.batch = n_dims == 3 ? dimension(dims, tensor, 0) : 1,
	};
	return ret->m && ret->n && ret->k && ret->batch;
}

static int take_operator(struct launches *t, const char *name, const struct json_value *args,
			 double op)
{
	struct kernel_product product;
	char key[32], text[128];
	size_t i = 0;

	while (i < ARRAY_SIZE(operators) && strcmp(operators[i].name, name) != 0)
		i++;
	if (i == ARRAY_SIZE(operators))
		return 0;
	if (op < 0 || !read_product(args, operators[i].tensor, operators[i].n_dims, &product)) {
		t->n_unsized++;
		return 0;
	}
	snprintf(key, sizeof(key), "%.0f", op);
	return json_object_set_new(t->products, key,
				   json_string(kernel_product_name(&product, text, sizeof(text)))) <
			       0
		       ? -ENOMEM
		       : 0;
}

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)": as tables have it. */
static const char *copy_name(const char *name)
{
	for (enum kernel_copy kind = COPY_HOST; kind < COPY_FILL; kind++)
		if (strncasecmp(name, kernel_copy_name(kind), strlen("memcpy HtoD")) == 0)
			return kernel_copy_name(kind);
	return kernel_copy_name(COPY_FILL);
}

static int take_event(void *ctx, const struct json_value *event, struct err *err)
{
	struct launches *t = ctx;
	const char *category = json_value_text(json_value_get(event, "cat"));
	const char *name = json_value_text(json_value_get(event, "name"));
	const struct json_value *args = json_value_get(event, "args");
	double id = json_value_number(json_value_get(args, "External id")),
	       op = id >= 0 && id < 0x1p53 ? id : -1,
	       us = json_value_number(json_value_get(event, "dur"));

	if (!category || !name || !name[0])
		return 0;
	if (strcmp(category, "cpu_op") == 0)
		return take_operator(t, name, args, op);
	if (strcmp(category, "gpu_memcpy") == 0 || strcmp(category, "gpu_memset") == 0)
		name = copy_name(name);
	else if (strcmp(category, "kernel") != 0)
		return 0;
	if (strncmp(name, "nccl", 4) == 0) {
		t->n_nccl++;
		return 0;
	}
	if (strlen(name) > NAME_MAX_BYTES)
		return err_set(err, EFBIG, "the name of a kernel has more than %d bytes",
			       NAME_MAX_BYTES);
	if (isnan(us))
		return err_set(err, EINVAL, "a kernel without a time (dur, in us)");
	return take_kernel(t, name, us, op, err);
}

void launches_deinit(struct launches *l)
{
	json_decref(l->names);
	json_decref(l->products);
	free(l->list);
}

int launches_read(FILE *f, const char *file, struct launches *ret, struct err *err)
{
	static const struct events_sink sink = {.event = take_event};
	struct launches l = {.names = json_object(), .products = json_object()};
	int r;

	if (!l.names || !l.products)
		r = err_set(err, ENOMEM, "no memory");
	else
		r = events_read(f, file, &sink, &l, err);
	if (r == 0 && !l.n)
		r = err_set(
			err, EINVAL,
			"%s: no event is a kernel (cat \"kernel\"): was it profiled on a GPU, with "
			"ProfilerActivity.CUDA?",
			file);
	if (r < 0)
		launches_deinit(&l);
	else
		*ret = l;
	return r;
}
