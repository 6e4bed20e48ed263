/* See dpro.h. */
#include "trace/dpro.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

#define STREAM_COMM 1 /* computation has 0 */

/* "Comm.4.SEND~>0_1_2_3": with what names the message among those of the tensor; @name: where it
 * has that, or nothing says it. *ret_owned: what is to be freed. Return: NULL: no memory. */
static const char *full_name(const char *name, const struct json_value *args, char **ret_owned)
{
	const char *told = json_value_text(json_value_get(args, "name")),
		   *suffix = told ? strstr(told, "~>") : NULL;
	uint64_t loop, channel, chunk, slice;
	int r;

	if (strstr(name, "~>"))
		return name;
	if (suffix)
		r = asprintf(ret_owned, "%s%s", name, suffix);
	else if (chrome_number(args, "loopId", &loop) &&
		 chrome_number(args, "channelId", &channel) &&
		 chrome_number(args, "chunkId", &chunk) && chrome_number(args, "sliceId", &slice))
		r = asprintf(ret_owned, "%s~>%u_%u_%u_%u", name, (unsigned int)loop,
			     (unsigned int)channel, (unsigned int)chunk, (unsigned int)slice);
	else
		return name;
	if (r < 0)
		*ret_owned = NULL;
	return *ret_owned;
}

static void read_comm(const char *name, struct trace_op *op)
{
	static const struct {
		const char *sub;
		enum trace_kind kind;
	} subs[] = {
		{".SEND", TRACE_SEND}, {".RECV", TRACE_RECV},  {".PUSH", TRACE_SEND},
		{".PULL", TRACE_RECV}, {"MEMCPY", TRACE_COPY}, {"ALLREDUCE", TRACE_COLLECTIVE},
	};
	size_t i = 0;

	op->stream = STREAM_COMM;
	op->kind = TRACE_SYNC;
	if (strstr(name, "NEGOTIATE"))
		return;
	while (i < sizeof(subs) / sizeof(subs[0]) && !strstr(name, subs[i].sub))
		i++;
	if (i < sizeof(subs) / sizeof(subs[0]))
		op->kind = subs[i].kind;
	if (op->kind == TRACE_COLLECTIVE)
		op->coll = COLL_ALLREDUCE;
}

int dpro_event(struct chrome *c, const struct json_value *event, struct err *err)
{
	static const char *const computes[] = {"FW.", "BW.", "OUTPUT.", "UPDATE", "I/O"};
	const char *name = json_value_text(json_value_get(event, "name"));
	const struct json_value *args = json_value_get(event, "args");
	CLEANUP(freep) char *owned = NULL;
	struct trace_op op = {.seq = UINT64_MAX,
			      .kind = TRACE_COMPUTE,
			      .coll = TRACE_NONE,
			      .comm = TRACE_NONE,
			      .peer = TRACE_NONE};
	bool is_comm = strncmp(name, "Comm.", 5) == 0;
	uint64_t peer;
	size_t i = 0;
	uint32_t n;
	int r;

	while (!is_comm && i < 5 && strncmp(name, computes[i], strlen(computes[i])) != 0)
		i++;
	if (!is_comm && i == 5)
		return 0;
	r = chrome_slot(c, event, &op.rank, err);
	if (r < 0)
		return r;
	if (is_comm) {
		read_comm(name, &op);
		if (chrome_number(args, "peer", &peer) && peer < TRACE_NONE)
			op.peer = (uint32_t)peer;
		chrome_number(args, "bytes", &op.bytes);
		name = full_name(name, args, &owned);
		if (!name)
			return -ENOMEM;
	}
	r = chrome_add(c, event, name, &op, &n, err);
	return r < 0 ? r : 1;
}
