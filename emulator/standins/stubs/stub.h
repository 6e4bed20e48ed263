/* What all stubs that make-stubs writes share. A stub takes every argument as a word, as the
 * calling conventions of x86-64 and arm64 pass pointers and integers. A caller may pass fewer;
 * the stub ignores the rest. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define ARGUMENTS                                                                                  \
	long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9, long a10, \
		long a11, long a12, long a13, long a14, long a15, long a16, long a17, long a18,    \
		long a19, long a20, long a21, long a22, long a23
#define PASS                                                                                      \
	(void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8, (void)a9, \
		(void)a10, (void)a11, (void)a12, (void)a13, (void)a14, (void)a15, (void)a16,      \
		(void)a17, (void)a18, (void)a19, (void)a20, (void)a21, (void)a22, (void)a23

/* A handle points to memory: places of a word each, for what calls say of it. A mistaken look into
 * it finds zeros. */
#define HANDLE_BYTES 4096

static inline void stub_log(int *is_said, const char *name, const char *what)
{
	if (__atomic_exchange_n(is_said, 1, __ATOMIC_RELAXED))
		return;
	if (getenv("NBOX_HOST_STUBS_LOG"))
		fprintf(stderr, "stub: %s: %s\n", name, what);
}

/* The first places of the new handle hold @values. */
static inline long stub_new(long where, const long *values, size_t size)
{
	void *handle = calloc(1, HANDLE_BYTES);

	if (!handle || !where)
		return 1;
	memcpy(handle, values, size);
	memcpy((void *)where, &handle, sizeof(handle));
	return 0;
}

static inline long stub_keep(long handle, size_t place, long value)
{
	if (handle)
		((long *)handle)[place] = value;
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

/* --- products of matrices: kernels, whose time the host CUDA runtime knows
 * -------------------------
 */

/* In the order of enum kernel_type of core/kernels/card.h, and struct kernel_product of rule.h. */
enum stub_type { STUB_F64, STUB_F32, STUB_TF32, STUB_F16, STUB_BF16, STUB_8BIT };
struct stub_product {
	int type;
	unsigned long long m, n, k, batch;
};
typedef int (*stub_product_fn)(void *stream, const struct stub_product *product);

/* The program has the runtime loaded, but perhaps not where a search of all libraries finds it. */
static inline stub_product_fn stub_find_product(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12"};
	static stub_product_fn found;
	void *library;

	for (size_t i = 0; i < 2 && !__atomic_load_n(&found, __ATOMIC_RELAXED); i++) {
		library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			__atomic_store_n(&found,
					 (stub_product_fn)dlsym(library, "__cudaNboxProduct"),
					 __ATOMIC_RELAXED);
	}
	return found;
}

/* @data is a cudaDataType; float's products are made of TF32 when the call (@compute, a
 * cublasComputeType_t) or the handle's math mode says so. */
static inline int stub_type_of(long data, long compute, long math_mode)
{
	enum { FAST_TF32 = 77, TF32_MODE = 3 };

	switch ((int)data) {
	case 1:
		return STUB_F64;
	case 2:
		return STUB_F16;
	case 14:
		return STUB_BF16;
	case 3:
	case 28:
	case 29:
		return STUB_8BIT;
	default:
		return (int)compute == FAST_TF32 || (int)math_mode == TF32_MODE ? STUB_TF32
										: STUB_F32;
	}
}

static inline long stub_multiply(long stream, const struct stub_product *product)
{
	enum { EXECUTION_FAILED = 13 };
	stub_product_fn fn = stub_find_product();

	return fn && fn((void *)stream, product) != 0 ? EXECUTION_FAILED : 0;
}

/* Of cuBLAS: place 0 of its handle is the stream, place 1 the math mode. */
static inline long stub_product(long handle, long m, long n, long k, long data, long compute,
				long batch)
{
	const long *places = (const long *)handle;
	struct stub_product product = {stub_type_of(data, compute, places[1]), (unsigned)m,
				       (unsigned)n, (unsigned)k, (unsigned)batch};

	return stub_multiply(places[0], &product);
}

/* cublasLtMatmul. Places of a layout: type, rows, columns, batch; place 0 of @matmul: compute type.
 */
static inline long stub_lt_product(long matmul, long a, long d, long stream)
{
	const long *in = (const long *)a, *out = (const long *)d;
	unsigned long long m = (unsigned long long)out[1], n = (unsigned long long)out[2];
	struct stub_product product = {stub_type_of(in[0], *(const long *)matmul, 0), m, n,
				       m ? (unsigned long long)in[1] * (unsigned long long)in[2] / m
					 : 0,
				       out[3] > 0 ? (unsigned long long)out[3] : 1};

	return stub_multiply(stream, &product);
}

static inline long stub_lt_layout(long layout, long attribute, long value)
{
	enum { BATCH_COUNT = 5 };
	int batch;

	if ((int)attribute != BATCH_COUNT || !value)
		return 0;
	memcpy(&batch, (const void *)value, sizeof(batch));
	return stub_keep(layout, 3, batch);
}
