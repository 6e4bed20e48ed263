/* See trace.h. */
#include "nbox/kernels/trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "kernels/rule.h"

#define VALUE_MAX (1 << 20) /* bytes of an event; those of PyTorch have some hundreds */
#define LAUNCHES_MAX (1 << 22)
#define NAME_MAX_BYTES (1 << 16)

struct reader {
	FILE *f;
	const char *file;
	size_t left; /* bytes that the value may still have */
	struct trace *trace;
	unsigned long n_events;
};

/* --- the JSON around the events ------------------------------------------------------------------
 */

/* One byte, so that nothing behind the value is taken. */
static size_t next_byte(void *buffer, size_t size, void *ctx)
{
	struct reader *r = ctx;
	int c = r->left ? getc(r->f) : EOF;

	if (c == EOF || !size)
		return 0;
	r->left--;
	*(char *)buffer = (char)c;
	return 1;
}

/* A number's end is known by the byte behind it, which is taken; a comma or a brace is not missed.
 */
static int read_value(struct reader *r, json_t **ret, struct err *err)
{
	json_error_t why;

	r->left = VALUE_MAX;
	*ret = json_load_callback(next_byte, r,
				  JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY |
					  JSON_DECODE_INT_AS_REAL,
				  &why);
	if (*ret)
		return 0;
	if (ferror(r->f))
		return err_set(err, EIO, "%s: cannot be read", r->file);
	if (!r->left)
		return err_set(err, EFBIG, "%s: a value has more than %d bytes", r->file,
			       VALUE_MAX);
	return err_set(err, EINVAL, "%s: %s", r->file, why.text);
}

/* The next byte that is neither a blank nor a comma; EOF. */
static int next_mark(struct reader *r)
{
	int c;

	do
		c = getc(r->f);
	while (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',');
	return c;
}

/* --- events --------------------------------------------------------------------------------------
 */

/* Return: its key in @names; NULL: no memory. */
static const char *intern(json_t *names, const char *name)
{
	if (!json_object_get(names, name) && json_object_set_new(names, name, json_true()) < 0)
		return NULL;
	return json_object_iter_key(json_object_iter_at(names, name));
}

static int take_kernel(struct trace *t, const char *name, double us, double op, struct err *err)
{
	if (t->n == LAUNCHES_MAX)
		return err_set(err, EFBIG, "more than %d kernels: profile fewer steps",
			       LAUNCHES_MAX);
	if (!(us >= 0 && us < TRACE_MAX_US))
		return err_set(err, EINVAL, "a kernel of %g us: that is no time below a minute",
			       us);
	if (t->n == t->capacity) {
		size_t capacity = 2 * t->capacity + 256;
		struct trace_launch *more =
			realloc(t->launches, capacity * sizeof(struct trace_launch));

		if (!more)
			return -ENOMEM;
		t->launches = more;
		t->capacity = capacity;
	}
	t->launches[t->n] = (struct trace_launch){intern(t->names, name), us + 0.0 /* no -0 */, op};
	return t->launches[t->n].name ? (t->n++, 0) : -ENOMEM;
}

/* Dimension @i of tensor @tensor of "Input Dims"; 0: there is none. */
static uint64_t dimension(const json_t *dims, size_t tensor, size_t i)
{
	double d = json_number_value(json_array_get(json_array_get(dims, tensor), i));

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
static bool read_product(const json_t *args, size_t tensor, size_t n_dims,
			 struct kernel_product *ret)
{
	const json_t *dims = json_object_get(args, "Input Dims");
	const char *type =
		json_string_value(json_array_get(json_object_get(args, "Input type"), tensor));
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

static int take_operator(struct trace *t, const char *name, const json_t *args, double op)
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

static int take_event(struct trace *t, const json_t *event, struct err *err)
{
	const char *category = json_string_value(json_object_get(event, "cat"));
	const char *name = json_string_value(json_object_get(event, "name"));
	const json_t *args = json_object_get(event, "args"),
		     *id = json_object_get(args, "External id");
	double op = id && json_number_value(id) >= 0 && json_number_value(id) < 0x1p53
			    ? json_number_value(id)
			    : -1;

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
	if (!json_is_number(json_object_get(event, "dur")))
		return err_set(err, EINVAL, "a kernel without a time (dur, in us)");
	return take_kernel(t, name, json_number_value(json_object_get(event, "dur")), op, err);
}

/* Behind the bracket. */
static int read_events(struct reader *r, struct err *err)
{
	for (;;) {
		json_auto_t *event = NULL;
		int c = next_mark(r), result = 0;

		if (c == ']')
			return 0;
		r->n_events++;
		if (c != '{')
			return err_set(err, EINVAL,
				       "%s: event %lu: the trace ends in the middle, or is none",
				       r->file, r->n_events);
		ungetc(c, r->f);
		result = read_value(r, &event, err);
		if (result < 0)
			return result;
		result = take_event(r->trace, event, err);
		if (result == -ENOMEM)
			return err_set(err, ENOMEM, "no memory for the kernels of %s", r->file);
		if (result < 0)
			return err_prefix(err, result, "%s: event %lu", r->file, r->n_events);
	}
}

/* --- the trace -----------------------------------------------------------------------------------
 */

/* Behind the first brace: up to the events. */
static int read_members(struct reader *r, struct err *err)
{
	int c, result;

	while ((c = next_mark(r)) == '"') {
		json_auto_t *key = NULL, *value = NULL;

		ungetc(c, r->f);
		result = read_value(r, &key, err);
		if (result < 0)
			return result;
		if (next_mark(r) != ':')
			break;
		c = next_mark(r);
		if (c == '[' && strcmp(json_string_value(key), "traceEvents") == 0)
			return read_events(r, err);
		ungetc(c, r->f);
		result = read_value(r, &value, err);
		if (result < 0)
			return result;
	}
	return err_set(err, EINVAL, "%s: is no trace: it has no list traceEvents", r->file);
}

void trace_deinit(struct trace *trace)
{
	json_decref(trace->names);
	json_decref(trace->products);
	free(trace->launches);
}

int trace_read(FILE *f, const char *file, struct trace *ret, struct err *err)
{
	struct trace trace = {.names = json_object(), .products = json_object()};
	struct reader reader = {.f = f, .file = file, .trace = &trace};
	int c = next_mark(&reader), r;

	if (!trace.names || !trace.products)
		r = err_set(err, ENOMEM, "no memory");
	else if (c == '{')
		r = read_members(&reader, err);
	else if (c == '[')
		r = read_events(&reader, err);
	else if (c == 0x1f)
		r = err_set(err, EINVAL, "%s: is compressed: gunzip -c %s | nbox kernels -", file,
			    file);
	else
		r = err_set(err, EINVAL, "%s: is no trace: it does not begin as JSON does", file);
	if (r == 0 && !trace.n)
		r = err_set(
			err, EINVAL,
			"%s: no event is a kernel (cat \"kernel\"): was it profiled on a GPU, with "
			"ProfilerActivity.CUDA?",
			file);
	if (r < 0)
		trace_deinit(&trace);
	else
		*ret = trace;
	return r;
}
