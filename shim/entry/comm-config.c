/* See comm-config.h. */
#include "shim/entry/comm-config.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CONFIG_MAX 4096

/* The string in @config at @offset; NULL when there is none, or no such field in its version. */
static const char *name_in(const ncclConfig_t *config, size_t offset)
{
	const char *name;

	if (config->size < offset + sizeof(name))
		return NULL;
	memcpy(&name, (const char *)config + offset, sizeof(name));
	return name;
}

/* Numbers that have a range. NCCL_CONFIG_UNDEF_INT is always allowed. */
static const struct {
	const char *name;
	size_t offset;
	int min, max;
} numbers[] = {
	{"blocking", offsetof(ncclConfig_t, blocking), 0, 1},
	{"cgaClusterSize", offsetof(ncclConfig_t, cga_cluster_size), 0, INT_MAX},
	{"minCTAs", offsetof(ncclConfig_t, min_ctas), 1, INT_MAX},
	{"maxCTAs", offsetof(ncclConfig_t, max_ctas), 1, INT_MAX},
	{"splitShare", offsetof(ncclConfig_t, split_share), 0, 1},
	{"collnetEnable", offsetof(ncclConfig_t, collnet_enable), 0, 1},
	{"shrinkShare", offsetof(ncclConfig_t, shrink_share), 0, 1},
	{"nvlsCTAs", offsetof(ncclConfig_t, nvls_ctas), 1, INT_MAX},
};

/* NCCL_CONFIG_UNDEF_INT where the config is of a version without it. */
static int number_in(const ncclConfig_t *config, size_t offset)
{
	int value;

	if (config->size < offset + sizeof(value))
		return NCCL_CONFIG_UNDEF_INT;
	memcpy(&value, (const char *)config + offset, sizeof(value));
	return value;
}

static int check(const ncclConfig_t *config, struct err *err)
{
	int least = number_in(config, offsetof(ncclConfig_t, min_ctas));
	int most = number_in(config, offsetof(ncclConfig_t, max_ctas));

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int value = number_in(config, numbers[i].offset);

		if (value == NCCL_CONFIG_UNDEF_INT ||
		    (value >= numbers[i].min && value <= numbers[i].max))
			continue;
		if (numbers[i].max == INT_MAX)
			return err_set(err, EINVAL, "the config's %s is %d, not %d or more",
				       numbers[i].name, value, numbers[i].min);
		return err_set(err, EINVAL, "the config's %s is %d, not %d or %d", numbers[i].name,
			       value, numbers[i].min, numbers[i].max);
	}
	if (least != NCCL_CONFIG_UNDEF_INT && most != NCCL_CONFIG_UNDEF_INT && least > most)
		return err_set(err, EINVAL, "the config's minCTAs, %d, is above its maxCTAs, %d",
			       least, most);
	return 0;
}

int config_copy(const ncclConfig_t *config, void **ret, struct err *err)
{
	static const size_t names[] = {offsetof(ncclConfig_t, net_name),
				       offsetof(ncclConfig_t, comm_name)};
	size_t bytes;
	char *copy;
	int r;

	*ret = NULL;
	if (!config)
		return 0;
	if (config->magic != NCCL_CONFIG_MAGIC || config->size < NCCL_CONFIG_HEAD ||
	    config->size > CONFIG_MAX)
		return err_set(err, EINVAL,
			       "the config was not set up with NCCL_CONFIG_INITIALIZER");
	r = check(config, err);
	if (r)
		return r;
	bytes = config->size;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		bytes += name_in(config, names[i]) ? strlen(name_in(config, names[i])) + 1 : 0;
	copy = malloc(bytes);
	if (!copy)
		return err_set(err, ENOMEM, "no memory");
	memcpy(copy, config, config->size);
	bytes = config->size;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = name_in(config, names[i]);
		char *kept = copy + bytes;

		if (!name)
			continue;
		bytes += (size_t)(stpcpy(kept, name) - kept) + 1;
		memcpy(copy + names[i], &kept, sizeof(kept));
	}
	((ncclConfig_t *)(void *)copy)->blocking = 1;
	*ret = copy;
	return 0;
}
