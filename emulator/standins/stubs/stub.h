/* What all stubs that make-stubs writes share. A stub takes every argument as a word, as the
 * calling conventions of x86-64 and arm64 pass pointers and integers. A caller may pass fewer;
 * the stub ignores the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define ARGUMENTS                                                                                  \
	long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9, long a10, \
		long a11
#define PASS                                                                                      \
	(void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8, (void)a9, \
		(void)a10, (void)a11

/* A handle points to memory that nobody reads: a mistaken look into it finds zeros. */
#define HANDLE_BYTES 4096

static inline void stub_log(int *is_said, const char *name, const char *what)
{
	if (__atomic_exchange_n(is_said, 1, __ATOMIC_RELAXED))
		return;
	if (getenv("NBOX_HOST_STUBS_LOG"))
		fprintf(stderr, "stub: %s: %s\n", name, what);
}

static inline long stub_new(long where)
{
	void *handle = calloc(1, HANDLE_BYTES);

	if (!handle || !where)
		return 1;
	memcpy((void *)where, &handle, sizeof(handle));
	return 0;
}

static inline long stub_new32(long where)
{
	static int last;
	int handle = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);

	memcpy((void *)where, &handle, sizeof(handle));
	return 0;
}

static inline long stub_put(long where, unsigned long value, size_t size)
{
	if (where)
		memcpy((void *)where, &value, size);
	return 0;
}

static inline long stub_parts(long part, long where, unsigned long version)
{
	unsigned long parts[] = {version / 10000, version / 100 % 100, version % 100};

	return (unsigned long)part < 3 ? stub_put(where, parts[part], 4) : 1;
}

/* A question of cuDNN's backend API: @n is how many elements of @type there is room for at @where;
 * 0 asks how many there are. Descriptors are the caller's, and stay as they are. */
static inline long stub_attribute(long type, long n, long ret_n, long where)
{
	static const unsigned char bytes[] = {8, 4, 1, 8, 4, 8, 8}; /* handle ... void pointer */
	enum { DESCRIPTOR = 15 };
	long one = 1;

	if (ret_n)
		memcpy((void *)ret_n, &one, sizeof(one));
	if (n > 0 && where && type != DESCRIPTOR)
		memset((void *)where, 0, (size_t)type < sizeof(bytes) ? bytes[type] : 4);
	return 0;
}

static inline long stub_delete(long handle)
{
	free((void *)handle);
	return 0;
}
