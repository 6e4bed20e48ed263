/* See torch-words.h. */
#include "trace/torch-words.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

int torch_collective(const char *name, const char *kernel)
{
	/* what comes first counts: "reduce_scatter" is no reduce */
	static const struct {
		const char *word;
		int kind;
	} words[] = {
		{"coalesced_", COLL_SENDRECV},
		{"allreduce", COLL_ALLREDUCE},
		{"all_reduce", COLL_ALLREDUCE},
		{"allgather", COLL_ALLGATHER},
		{"all_gather", COLL_ALLGATHER},
		{"reduce_scatter", COLL_REDUCESCATTER},
		{"reducescatter", COLL_REDUCESCATTER},
		{"broadcast", COLL_BROADCAST},
		{"all_to_all", COLL_ALLTOALL},
		{"alltoall", COLL_ALLTOALL},
		{"reduce", COLL_REDUCE},
		{"gather", COLL_GATHER},
		{"scatter", COLL_SCATTER},
		{"barrier", COLL_ALLREDUCE},
		{"sendrecv", COLL_SENDRECV},
		{"coalesced", COLL_SENDRECV},
		{"send", TORCH_SEND},
		{"recv", TORCH_RECV},
	};

	for (size_t i = 0; name && i < ARRAY_SIZE(words); i++)
		if (strcasestr(name, words[i].word))
			return words[i].kind;
	return kernel ? torch_collective(kernel, NULL) : -1;
}

uint32_t torch_type_bytes(const char *name)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} types[] = {
		{"Byte", 1},   {"Char", 1},         {"Bool", 1},           {"Short", 2},
		{"Half", 2},   {"Int", 4},          {"Float", 4},          {"Long", 8},
		{"Double", 8}, {"BFloat16", 2},     {"UInt32", 4},         {"UInt64", 8},
		{"UInt16", 2}, {"ComplexFloat", 8}, {"ComplexDouble", 16},
	};

	for (size_t i = 0; name && i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].bytes;
	return name && strncmp(name, "Float8", 6) == 0 ? 1 : 0;
}

int torch_ranks(const struct json_value *value, uint32_t **ret)
{
	const char *text = json_value_text(value);
	const struct json_value *one = NULL;
	size_t n_max = text ? strlen(text) : value ? value->n_inside : 0, n = 0;
	CLEANUP(freep) uint32_t *ranks = calloc(n_max + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	while ((one = json_value_next(value, one)) != NULL) {
		if (!(one->number >= 0 && one->number < INT_MAX))
			return 0;
		ranks[n++] = (uint32_t)one->number;
	}
	for (const char *at = text; at && *at; at++) {
		if (*at == '.')
			return 0; /* "...": there are more */
		if (*at >= '0' && *at <= '9') {
			char *end;
			unsigned long rank = strtoul(at, &end, 10);

			if (rank > INT_MAX)
				return 0;
			ranks[n++] = (uint32_t)rank;
			at = end - 1;
		}
	}
	if (n)
		*ret = steal_ptr(ranks);
	return (int)n;
}
