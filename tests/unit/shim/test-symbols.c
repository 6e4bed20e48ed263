/* The symbol table against libnbox.so itself: what nm says it exports, that each
 * function reaches the real library when there is no virtual cluster, and that none
 * changes errno. */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/real/nccl-api.h"

static const char *const names[] = {
#define NCCL_SYMBOL(how, ret, name, params, args) "nccl" #name, "pnccl" #name,
#include "shim/real/nccl-symbols.h"
#undef NCCL_SYMBOL
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

static void *handle;
static unsigned int *calls;

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < N_NAMES; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static size_t compare_with_nm(const char *path, bool is_ours)
{
	char command[512], line[512], name[256];
	size_t n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "nm -D --defined-only '%s'", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *at;

		if (sscanf(line, "%*s %*s %255s", name) != 1)
			continue;
		at = strchr(name, '@');
		if (at)
			*at = 0;
		/* exported by the binaries of 2.28 and 2.30, in no header */
		if (!strcmp(name, "ncclResetDebugInitInternal") ||
		    !strncmp(name, "ncclParamDumpAllFlag", 20) ||
		    !strncmp(name, "ncclParamNoCacheStr", 19) ||
		    !strcmp(name, "ncclParamEnvPluginGet") ||
		    !strcmp(name, "ncclParamIsCacheDisabled") ||
		    !strcmp(name, "ncclParamRegistryInstance"))
			continue;
		/* scripts/check-exports has libnbox.so's own functions of CUDA; it is NCCL's
		 * plug-in, too */
		if (is_ours ? !strncmp(name + strspn(name, "_"), "cu", 2) ||
				      !strncmp(name, "ncclNetPlugin_v", 15) ||
				      !strncmp(name, "ncclProfiler_v", 14) ||
				      !strncmp(name, "ncclTunerPlugin_v", 17)
			    : (strncmp(name, "nccl", 4) && strncmp(name, "pnccl", 5)))
			continue;
		if (!is_listed(name))
			fail_msg("%s exports %s, which is not in the table", path, name);
		n++;
	}
	assert_int_equal(pclose(f), 0);
	return n;
}

static void exports_are_the_table(void **state)
{
	(void)state;
	assert_int_equal(compare_with_nm(getenv("LIBNBOX"), true), N_NAMES);
	for (size_t i = 0; i < N_NAMES; i++)
		assert_non_null(dlsym(handle, names[i]));
}

static void a_real_nccl_exports_nothing_more(void **state)
{
	const char *path = getenv("REAL_NCCL");

	(void)state;
	/* Not skip(): cmocka says "not ok" then, which meson 0.61 (Ubuntu 22.04) takes for a
	 * failure. */
	if (!path || !*path)
		return;
	assert_true(compare_with_nm(path, false) > 50);
}

/* All but two functions take eleven integers or pointers at most. The two take an id of 128 bytes
 * by value, which x86-64 passes on the stack and aarch64 as a pointer: only a call by its own type
 * passes one on both. */
static void call_with_zeroes(const char *name)
{
	void *fn = dlsym(handle, name);
	ncclUniqueId id;

	memset(&id, 0, sizeof(id));
	name += *name == 'p';
	if (!strcmp(name, "ncclCommInitRank") || !strcmp(name, "ncclCommInitRankConfig"))
		((ncclResult_t(*)(ncclComm_t *, int, ncclUniqueId, int,
				  ncclConfig_t *))fn)(NULL, 0, id, 0, NULL);
	else
		((long (*)(long, long, long, long, long, long, long, long, long, long,
			   long))fn)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void forwarding_keeps_arguments_and_errno(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_NAMES; i++) {
		unsigned int before = calls[i / 2];

		errno = EXDEV;
		call_with_zeroes(names[i]);
		if (errno != EXDEV)
			fail_msg("%s changed errno", names[i]);
		if (calls[i / 2] != before + 1)
			fail_msg("%s did not reach the real library", names[i]);
	}
}

static void the_second_name_is_the_same_function(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_NAMES; i += 2)
		assert_ptr_equal(dlsym(handle, names[i]), dlsym(handle, names[i + 1]));
}

static int setup(void **state)
{
	void *fake;

	(void)state;
	unsetenv("NBOX_ADDR");
	setenv("NBOX_NCCL", getenv("FAKE_NCCL"), 1);
	fake = dlopen(getenv("FAKE_NCCL"), RTLD_NOW);
	calls = fake ? dlsym(fake, "fake_calls") : NULL;
	handle = dlopen(getenv("LIBNBOX"), RTLD_NOW);
	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	return handle && calls ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exports_are_the_table),
		cmocka_unit_test(a_real_nccl_exports_nothing_more),
		cmocka_unit_test(the_second_name_is_the_same_function),
		cmocka_unit_test(forwarding_keeps_arguments_and_errno),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
