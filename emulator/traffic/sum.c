/* See sum.h. LL: lines of 16 bytes, which are data, flag, data, flag of 4 bytes each. LL128: lines
 * of 128 bytes, whose last 8 are the flag. In which order the data lie in the lines of LL128
 * is the same in all messages of one index, and elements never cross a line. */
#include "traffic/sum.h"

#include <errno.h>
#include <string.h>

#include "nccl-plugin/plugin.h"
#include "reduce/reduce.h"

#define LL_LINE 16
#define LL_DATA 8
#define LL128_LINE 128
#define LL128_DATA 120
#define LINES 256 /* that are unpacked at a time */

struct how {
	enum coll_dtype dtype;
	enum coll_redop redop;
	uint64_t element; /* bytes */
};

static void unpack(unsigned char *to, const unsigned char *lines, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, to += LL_DATA, lines += LL_LINE) {
		memcpy(to, lines, 4);
		memcpy(to + 4, lines + 8, 4);
	}
}

static void pack(unsigned char *lines, const unsigned char *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, from += LL_DATA, lines += LL_LINE) {
		memcpy(lines, from, 4);
		memcpy(lines + 8, from + 4, 4);
	}
}

static void add_ll(const struct how *how, unsigned char *to, const unsigned char *from,
		   uint64_t bytes)
{
	_Alignas(64) unsigned char a[LINES * LL_DATA], b[LINES * LL_DATA];

	for (uint64_t at = 0; at < bytes; at += LINES * LL_LINE) {
		uint64_t n = (bytes - at) / LL_LINE < LINES ? (bytes - at) / LL_LINE : LINES;

		unpack(a, to + at, n);
		unpack(b, from + at, n);
		reduce_apply(how->dtype, how->redop, a, a, b, n * LL_DATA / how->element);
		pack(to + at, a, n);
	}
}

static void add(const struct how *how, uint32_t protocol, unsigned char *to,
		const unsigned char *from, uint64_t bytes)
{
	if (protocol == PLUGIN_LL) {
		add_ll(how, to, from, bytes);
	} else if (protocol == PLUGIN_LL128) {
		for (uint64_t at = 0; at < bytes; at += LL128_LINE)
			reduce_apply(how->dtype, how->redop, to + at, to + at, from + at,
				     LL128_DATA / how->element);
	} else {
		reduce_apply(how->dtype, how->redop, to, to, from, bytes / how->element);
	}
}

static void divide_ll(const struct how *how, unsigned char *at, uint64_t bytes, uint32_t by)
{
	_Alignas(64) unsigned char data[LL_DATA];

	for (; bytes >= LL_LINE; at += LL_LINE, bytes -= LL_LINE) {
		unpack(data, at, 1);
		reduce_average(how->dtype, data, data, by, LL_DATA / how->element);
		pack(at, data, 1);
	}
}

static uint64_t bytes_of(const struct traffic_body *b)
{
	return b ? b->bytes : 0;
}

static int check(const struct how *how, uint32_t protocol, struct traffic_body *const *bodies,
		 uint32_t n, struct err *err)
{
	uint64_t bytes = bytes_of(bodies[0]);
	uint64_t unit = protocol == PLUGIN_LL      ? LL_LINE
			: protocol == PLUGIN_LL128 ? LL128_LINE
						   : how->element;

	for (uint32_t i = 1; i < n; i++)
		if (bytes_of(bodies[i]) != bytes)
			return err_set(err, EPROTO,
				       "messages of %llu and of %llu bytes cannot be summed: the "
				       "real ranks sum different amounts of data",
				       (unsigned long long)bytes,
				       (unsigned long long)bytes_of(bodies[i]));
	if (bytes % unit)
		return err_set(err, EPROTO,
			       "messages of %llu bytes cannot be summed: NCCL's come in %llu bytes "
			       "each with this data type and protocol",
			       (unsigned long long)bytes, (unsigned long long)unit);
	return 0;
}

/* Makes @body one that nobody else has. */
static int make_own(struct traffic_bodies *pool, struct traffic_body **body)
{
	struct traffic_body *own;

	if (!*body || (*body)->refs == 1)
		return 0;
	own = traffic_body_new(pool, (*body)->bytes);
	if (!own)
		return -ENOMEM;
	memcpy(own->at, (*body)->at, own->bytes);
	traffic_body_unref(*body);
	*body = own;
	return 0;
}

int sum_bodies(struct traffic_bodies *pool, uint32_t protocol, uint32_t dtype, uint32_t redop,
	       struct traffic_body **bodies, uint32_t n, struct traffic_body **ret, struct err *err)
{
	struct how how = {dtype, redop == COLL_AVG ? COLL_SUM : redop, coll_dtype_bytes(dtype)};
	struct traffic_body *to;
	int r = check(&how, protocol, bodies, n, err);

	r = r ? r : make_own(pool, &bodies[0]);
	to = bodies[0];
	for (uint32_t i = 1; r == 0 && to && i < n; i++)
		add(&how, protocol, to->at, bodies[i]->at, to->bytes);
	for (uint32_t i = r == 0 ? 1 : 0; i < n; i++)
		traffic_body_unref(bodies[i]);
	if (r == 0)
		*ret = to;
	return r;
}

int sum_divide(struct traffic_bodies *pool, uint32_t protocol, uint32_t dtype, uint32_t by,
	       struct traffic_body **body, struct err *err)
{
	struct how how = {dtype, COLL_AVG, coll_dtype_bytes(dtype)};
	int r = check(&how, protocol, body, 1, err);
	unsigned char *at;

	r = r ? r : make_own(pool, body);
	if (r < 0 || !*body)
		return r;
	at = (*body)->at;
	if (protocol == PLUGIN_LL)
		divide_ll(&how, at, (*body)->bytes, by);
	else if (protocol == PLUGIN_LL128)
		for (uint64_t i = 0; i < (*body)->bytes; i += LL128_LINE)
			reduce_average(dtype, at + i, at + i, by, LL128_DATA / how.element);
	else
		reduce_average(dtype, at, at, by, (*body)->bytes / how.element);
	return 0;
}
