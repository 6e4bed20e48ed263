/* What abi-table.c defines, under one name for each header it is compiled with. */
#pragma once

struct abi_row {
	const char *name;
	long long value; /* of a field: offset * 1000 + size */
};

extern const struct abi_row abi_ours[], abi_theirs[];
extern const void *const abi_config_ours, *const abi_config_theirs;
extern const void *const abi_sim_ours, *const abi_sim_theirs;

#ifdef ABI_THEIRS
#define ABI_TABLE abi_theirs
#define ABI_CONFIG abi_config_theirs
#define ABI_SIM abi_sim_theirs
#else
#define ABI_TABLE abi_ours
#define ABI_CONFIG abi_config_ours
#define ABI_SIM abi_sim_ours
#endif
