/* See wire.h: names, headers and words. body.c checks the bodies. */
#include "wire/wire.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"

static const char *const type_names[WIRE_TYPE_END] = {
	[WIRE_HELLO] = "HELLO",
	[WIRE_WELCOME] = "WELCOME",
	[WIRE_COMM_INIT] = "COMM_INIT",
	[WIRE_COMM_READY] = "COMM_READY",
	[WIRE_COMM_SPLIT] = "COMM_SPLIT",
	[WIRE_COMM_SHRINK] = "COMM_SHRINK",
	[WIRE_COMM_FREE] = "COMM_FREE",
	[WIRE_LOCAL_ID] = "LOCAL_ID",
	[WIRE_ARRIVE] = "ARRIVE",
	[WIRE_MESSAGE] = "MESSAGE",
	[WIRE_RELEASE] = "RELEASE",
	[WIRE_DONE] = "DONE",
	[WIRE_ABORT] = "ABORT",
	[WIRE_ERROR] = "ERROR",
	[WIRE_PING] = "PING",
	[WIRE_STATUS] = "STATUS",
	[WIRE_BYE] = "BYE",
	[WIRE_CONN] = "CONN",
	[WIRE_BOOT] = "BOOT",
	[WIRE_GROUP] = "GROUP",
	[WIRE_NOTE] = "NOTE",
	[WIRE_JOB] = "JOB",
	[WIRE_MEET] = "MEET",
	[WIRE_POINT] = "POINT",
	[WIRE_MOVE] = "MOVE",
	[WIRE_CLASSES] = "CLASSES",
	[WIRE_FLOW] = "FLOW",
	[WIRE_WANT] = "WANT",
	[WIRE_TOOK] = "TOOK",
	[WIRE_TUNE] = "TUNE",
};

static const char *const exchange_names[] = {
	[EXCHANGE_NONE] = "none",
	[EXCHANGE_MESSAGES] = "messages",
	[EXCHANGE_PAYLOAD] = "payload",
};

static const char *const nccl_names[] = {[NCCL_GATE] = "gate", [NCCL_FULL] = "full"};

#define DATA_LIST "mirror, fill, identity, none"
static const char *const data_names[] = {
	[DATA_MIRROR] = "mirror",
	[DATA_FILL] = "fill",
	[DATA_IDENTITY] = "identity",
	[DATA_NONE] = "none",
};

const char *wire_type_name(uint32_t type)
{
	return type < WIRE_TYPE_END && type_names[type] ? type_names[type] : "?";
}

const char *wire_nccl_name(uint32_t n)
{
	return n < ARRAY_SIZE(nccl_names) ? nccl_names[n] : "?";
}

const char *wire_exchange_name(uint32_t e)
{
	return e < ARRAY_SIZE(exchange_names) ? exchange_names[e] : "?";
}

const char *wire_data_name(uint32_t d)
{
	return d < ARRAY_SIZE(data_names) ? data_names[d] : "?";
}

int wire_data_parse(const char *name, uint32_t *ret, struct err *err)
{
	const char *near;

	for (size_t i = 0; i < ARRAY_SIZE(data_names); i++)
		if (!strcmp(data_names[i], name)) {
			*ret = (uint32_t)i;
			return 0;
		}
	near = suggest(name, data_names, ARRAY_SIZE(data_names));
	if (near)
		return err_set(err, EINVAL,
			       "unknown data policy '%s'; did you mean '%s'? (" DATA_LIST ")", name,
			       near);
	return err_set(err, EINVAL, "unknown data policy '%s'; it is one of " DATA_LIST, name);
}

void wire_hdr_init(struct wire_hdr *h, enum wire_type type, uint64_t body_bytes)
{
	memset(h, 0, sizeof(*h));
	h->magic = WIRE_MAGIC;
	h->version = WIRE_VERSION;
	h->type = (uint16_t)type;
	h->body_bytes = body_bytes;
}

int wire_hdr_check(const struct wire_hdr *h, struct err *err)
{
	uint64_t most = WIRE_CONTROL_MAX;

	if (h->magic != WIRE_MAGIC)
		return err_set(err, EPROTO,
			       "not a frame of nbox: it starts with 0x%08x instead of 0x%08x; is "
			       "something else talking to this address?",
			       h->magic, WIRE_MAGIC);
	if (h->version != WIRE_VERSION)
		return err_set(err, EPROTO,
			       "the peer speaks version %u of the protocol, this is version %u; "
			       "use nboxd and libnbox.so of one build",
			       h->version, WIRE_VERSION);
	if (h->type == 0 || h->type >= WIRE_TYPE_END)
		return err_set(err, EPROTO, "frame of unknown type %u", h->type);
	if (h->type == WIRE_MESSAGE || h->type == WIRE_BOOT)
		most = WIRE_BODY_MAX;
	if (h->body_bytes > most)
		return err_set(err, EPROTO, "%s frame claims %llu bytes, at most %llu are allowed",
			       wire_type_name(h->type), (unsigned long long)h->body_bytes,
			       (unsigned long long)most);
	return 0;
}
