/* Keys as torch spells them (and others that look alike). */
#include <string.h>

#include "cmocka-all.h"
#include "nboxd/store/torch-key.h"
#include "talk.h"

static const struct {
	const char *key;
	enum torch_key_kind kind;
	const char *group, *device;
	uint32_t rank, other;
	bool is_local;
} cases[] = {
	{"init/", TORCH_WORKERS, "", "", 0, 0, false},
	{"/init/", TORCH_OTHER, "", "", 0, 0, false},
	{"/default_pg/0//cuda//0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/default_pg/0//cuda//12", TORCH_ID, "0", "cuda", 12, 0, false},
	{"//worker/attempt_0/default_pg/0//cuda//0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/mine/default_pg/0//cuda//0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/default_pg/0//7//cuda//0", TORCH_ID, "7", "cuda", 0, 0, false},
	/* a store of the job's own */
	{"/mine/0//cuda//0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/0//cuda//0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/0//7//cuda//0", TORCH_ID, "7", "cuda", 0, 0, false},
	{"/mine/0//7//cpu//0/13", TORCH_GLOO, "7", "cpu", 13, 0, false},
	{"/xdefault_pg/0//cuda//0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/default_pg/0//7//9//cuda//0", TORCH_ID, "9", "cuda", 0, 0, false},
	{"/default_pg/0//2cb1a6//cuda//3", TORCH_ID, "2cb1a6", "cuda", 3, 0, false},
	{"/default_pg/0//7//cuda//0:1", TORCH_ID_PAIR, "7", "cuda", 0, 1, false},
	{"/default_pg/0//cuda//3:511", TORCH_ID_PAIR, "0", "cuda", 3, 511, false},
	{"/default_pg/0//cuda//UniqueNCCLID:2", TORCH_ID_ROOT, "0", "cuda", 2, 0, false},
	{"/default_pg/0//7//0", TORCH_ID, "7", "", 0, 0, false},
	{"/default_pg/0//cpu//0/13", TORCH_GLOO, "0", "cpu", 13, 0, false},
	{"/default_pg/0//5//cpu//0/2", TORCH_GLOO, "5", "cpu", 2, 0, false},
	{"/default_pg/store_based_barrier_key:0", TORCH_BARRIER, "0", "", 0, 0, false},
	{"/default_pg/0//store_based_barrier_key:7", TORCH_BARRIER, "7", "", 0, 0, false},
	{"/default_pg/0//store_based_barrier_key:7:last_worker", TORCH_BARRIER_LAST, "7", "", 0, 0,
	 false},
	{"/default_pg/0//ab12//store_based_barrier_key:ab12", TORCH_BARRIER, "ab12", "", 0, 0,
	 true},
	{"/default_pg/0//ab12//store_based_barrier_key:ab12:last_worker", TORCH_BARRIER_LAST,
	 "ab12", "", 0, 0, true},
	/* torch 2.15 */
	{"/default_pg/0//cuda//0/nccl_storekey_0", TORCH_ID, "0", "cuda", 0, 0, false},
	{"/default_pg/0//7//cuda//1/nccl_storekey_12", TORCH_ID, "7", "cuda", 1, 0, false},
	{"/default_pg/0//7//cuda//0:1/nccl_storekey_0", TORCH_ID_PAIR, "7", "cuda", 0, 1, false},
	{"/default_pg/0//cuda//0/nccl_storekey_", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//0/nccl_storekey_0/x", TORCH_OTHER, "0", "", 0, 0, false},
	/* none of torch's */
	{"", TORCH_OTHER, "", "", 0, 0, false},
	{"/", TORCH_OTHER, "", "", 0, 0, false},
	{"//", TORCH_OTHER, "", "", 0, 0, false},
	{"/exception_dump", TORCH_OTHER, "", "", 0, 0, false},
	{"/none/torchelastic/role_info/0", TORCH_OTHER, "", "", 0, 0, false},
	{"/default_pg/0//cuda//", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//x", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//0x", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//1:0", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//1:1", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//0:", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//99999999999", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cuda//0/3", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/0//cpu//0", TORCH_OTHER, "0", "", 0, 0, false},
	{"/default_pg/00//cuda//0", TORCH_OTHER, "", "", 0, 0, false},
	{"/default_pg/0//done", TORCH_OTHER, "0", "", 0, 0, false},
	{"/x/default_pg/0//7//cuda//done", TORCH_OTHER, "7", "", 0, 0, false},
	{"/default_pg/0//7//9//cuda//a//b", TORCH_OTHER, "9", "", 0, 0, false},
	{"/default_pg/0//7//done", TORCH_OTHER, "7", "", 0, 0, false},
	{"/xdefault_pg/0//7//cuda//done", TORCH_OTHER, "", "", 0, 0, false},
	{"/default_pg/0", TORCH_OTHER, "", "", 0, 0, false},
	{"/mine/00//cuda//0", TORCH_OTHER, "", "", 0, 0, false},
	{"/mine/0//7//0", TORCH_OTHER, "", "", 0, 0, false},
	{"/cuda//0", TORCH_OTHER, "", "", 0, 0, false},
	{"0//cuda//0", TORCH_OTHER, "", "", 0, 0, false},
	{"/default_pg/0//////cuda//0", TORCH_OTHER, "", "", 0, 0, false},
	{"/my//cuda//0", TORCH_OTHER, "", "", 0, 0, false},
};

static bool is_text(struct store_bytes b, const char *text)
{
	return b.n == strlen(text) && (b.n == 0 || memcmp(b.p, text, b.n) == 0);
}

static void torchs_keys_are_understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct torch_key k = torch_key_parse(TEXT(cases[i].key));

		if (k.kind != cases[i].kind || !is_text(k.group, cases[i].group) ||
		    !is_text(k.device, cases[i].device) || k.rank != cases[i].rank ||
		    k.other != cases[i].other || k.is_local != cases[i].is_local ||
		    k.is_default != (strcmp(cases[i].group, "0") == 0))
			fail_msg("'%s': kind %d, group '%.*s', device '%.*s', %u %u, local %d",
				 cases[i].key, k.kind, (int)k.group.n, (const char *)k.group.p,
				 (int)k.device.n, (const char *)k.device.p, k.rank, k.other,
				 k.is_local);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(torchs_keys_are_understood)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
