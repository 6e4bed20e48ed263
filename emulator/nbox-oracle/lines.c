/* See lines.h. */
#include "nbox-oracle/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const oracle_op_names[ORACLE_OPS] = {
	[ORACLE_BROADCAST] = "broadcast", [ORACLE_REDUCE] = "reduce",
	[ORACLE_ALLGATHER] = "allgather", [ORACLE_REDUCESCATTER] = "reducescatter",
	[ORACLE_ALLREDUCE] = "allreduce",
};

int oracle_costs_print(const struct oracle_costs *c, char *buf, size_t size)
{
	int n = snprintf(buf, size, "costs %s %" PRIu64 " %u %u", oracle_op_names[c->op], c->bytes,
			 c->n_algos, c->n_protos);

	for (uint32_t i = 0; i < c->n_algos * c->n_protos && (size_t)n < size; i++)
		n += snprintf(buf + n, size - (size_t)n, " %.9g", (double)c->us[i]);
	return n;
}

int oracle_costs_parse(const char *line, struct oracle_costs *ret)
{
	struct oracle_costs c = {.bytes = 0};
	char op[32];
	int at = 0;
	uint32_t i;

	if (sscanf(line, "costs %31s %" SCNu64 " %u %u%n", op, &c.bytes, &c.n_algos, &c.n_protos,
		   &at) != 4 ||
	    c.n_algos > ORACLE_ALGOS_MAX || c.n_protos > ORACLE_PROTOS_MAX)
		return -EPROTO;
	for (i = 0; i < ORACLE_OPS && strcmp(op, oracle_op_names[i]) != 0; i++)
		;
	if (i == ORACLE_OPS)
		return -EPROTO;
	c.op = (enum oracle_op)i;
	line += at;
	for (i = 0; i < c.n_algos * c.n_protos; i++) {
		char *end;

		c.us[i] = strtof(line, &end);
		if (end == line || !isfinite(c.us[i]))
			return -EPROTO;
		line = end;
	}
	if (*line)
		return -EPROTO;
	*ret = c;
	return 0;
}
