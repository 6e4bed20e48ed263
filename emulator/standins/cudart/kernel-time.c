/* See kernel-time.h. */
#include "kernel-time.h"

#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernels/table.h"

#define MAX_NS 60e9

static struct kernel_table *table; /* NULL: no kernel takes time */
static bool is_wrong, is_logging;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* of what follows, and all symbols' prices */
static void *tallies;              /* tsearch()'s tree */

/* Launches of one name, for NBOX_HOST_KERNEL_LOG. */
struct tally {
	char *name; /* owned */
	uint64_t n;
	double ns;
};

/* As traces have it. Only where the program has C++'s runtime itself. Return: the caller's; NULL.
 */
static char *demangle(const char *name)
{
	char *(*fn)(const char *, char *, size_t *, int *) = NULL;
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	int status;

	if (library)
		*(void **)&fn = dlsym(library, "__cxa_demangle");
	return fn ? fn(name, NULL, NULL, &status) : NULL;
}

/* --- what was launched ---------------------------------------------------------------------------
 */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tally *)a)->name, ((const struct tally *)b)->name);
}

/* With the lock held. A launch for which there is no memory is not counted. */
static void count(const char *name, double ns)
{
	struct tally key = {.name = (char *)(uintptr_t)name}, **found, *new;

	if (!is_logging)
		return;
	found = tfind(&key, &tallies, by_name);
	if (!found) {
		new = calloc(1, sizeof(*new));
		if (new)
			new->name = strdup(name);
		found = new &&new->name ? tsearch(new, &tallies, by_name) : NULL;
	}
	if (found) {
		(*found)->n++;
		(*found)->ns += ns;
	}
}

static void print_tally(const void *node, VISIT visit, int depth)
{
	const struct tally *t = *(struct tally *const *)node;
	CLEANUP(freep) char *readable = NULL;

	(void)depth;
	if (visit != postorder && visit != leaf)
		return;
	readable = demangle(t->name);
	fprintf(stderr, "kernel: %llu launches, %.3fus in all: %s\n", (unsigned long long)t->n,
		t->ns / 1e3, readable ? readable : t->name);
}

static void print_tallies(void)
{
	pthread_mutex_lock(&lock);
	twalk(tallies, print_tally);
	pthread_mutex_unlock(&lock);
}

/* --- how long it takes ---------------------------------------------------------------------------
 */

static void read_variables(void)
{
	const char *text = getenv("NBOX_HOST_KERNEL_TIME"), *log = getenv("NBOX_HOST_KERNEL_LOG");
	struct err err = {0};

	is_logging = log && strcmp(log, "1") == 0 && atexit(print_tallies) == 0;
	if (!text || !*text)
		return;
	is_wrong = kernel_table_open(text, &table, &err) < 0;
	if (is_wrong)
		fprintf(stderr,
			"host CUDA runtime: NBOX_HOST_KERNEL_TIME: %s. Every kernel launch fails.\n",
			err.text);
}

static bool is_ready(void)
{
	pthread_once(&once, read_variables);
	return !is_wrong;
}

/* Return: @ns as a whole number, below a minute. */
static uint64_t bounded(double ns)
{
	return (uint64_t)(ns < MAX_NS ? ns : MAX_NS);
}

static struct kernel_price price_of(const char *name)
{
	CLEANUP(freep) char *readable = demangle(name);
	const struct kernel_row *row = kernel_table_find(table, name, readable);

	return row->card ? rule_price(row->card, name) : (struct kernel_price){.fixed_ns = row->ns};
}

bool kernel_time_of(struct symbol *kernel, dim3 grid, dim3 block, uint64_t *ret_ns)
{
	double blocks = (double)grid.x * grid.y * grid.z;
	double threads = blocks * block.x * block.y * block.z;

	if (!is_ready())
		return false;
	pthread_mutex_lock(&lock);
	if (table && !kernel->is_priced)
		kernel->price = price_of(kernel->name);
	kernel->is_priced = true;
	*ret_ns = bounded(kernel->price.fixed_ns + threads * kernel->price.thread_ns +
			  blocks * grid.x * kernel->price.square_ns);
	count(kernel->name, (double)*ret_ns);
	pthread_mutex_unlock(&lock);
	return true;
}

bool kernel_time_of_product(const struct kernel_product *product, uint64_t *ret_ns)
{
	const struct kernel_row *row;
	char name[128];

	if (!is_ready())
		return false;
	kernel_product_name(product, name, sizeof(name));
	row = table ? kernel_table_find(table, name, NULL) : NULL;
	*ret_ns = !row ? 0 : bounded(row->card ? rule_product_ns(row->card, product) : row->ns);
	pthread_mutex_lock(&lock);
	count(name, (double)*ret_ns);
	pthread_mutex_unlock(&lock);
	return true;
}

bool kernel_time_of_copy(enum kernel_copy kind, uint64_t bytes, uint64_t *ret_ns)
{
	const struct kernel_row *row;
	const char *name = kernel_copy_name(kind);

	if (!is_ready())
		return false;
	row = table && kind != COPY_HOST ? kernel_table_find(table, name, NULL) : NULL;
	*ret_ns = !row ? 0 : bounded(row->card ? rule_copy_ns(row->card, kind, bytes) : row->ns);
	pthread_mutex_lock(&lock);
	count(name, (double)*ret_ns);
	pthread_mutex_unlock(&lock);
	return true;
}
