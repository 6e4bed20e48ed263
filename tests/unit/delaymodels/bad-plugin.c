/* Plug-ins that are wrong in one way each, chosen by WRONG, for test-loader.c. */
#include <math.h>
#include <string.h>

#include "nbox-delaymodel.h"

enum wrong {
	OTHER_ABI,
	TOO_SHORT,
	TOO_LONG,
	SMALL_SYMBOL,
	NO_SYMBOL,
	NO_NAME,
	NO_CREATE,
	NO_DESTROY,
	NO_ANSWER,
	NO_DECORATION,
	OTHER_NAME, /* refused */
	NEWER,      /* taken: it has fields that this host does not know */
	SILENT_CREATE,
	CREATE_SAYS_ONE,
	NAN_OP,
	NEGATIVE_OP,
	INFINITE_OP,
	ENDLESS_OP,
	ODD_CODE,
	SILENT_ERROR,
	LOUD_ERROR,
	NAN_LATENCY,
	NEGATIVE_OCCUPANCY,
	NAN_EXTRA,
	NEGATIVE_SEGMENT,
	NAN_SEGMENT,
	LOUD_SEGMENT,
	EATS_MESSAGES
};

#define HAS(x) (WRONG == (x))
#define SEGMENT_IS_BAD (HAS(NEGATIVE_SEGMENT) || HAS(NAN_SEGMENT) || HAS(LOUD_SEGMENT))
#define DECORATES \
	(WRONG == NO_DECORATION || WRONG == NAN_EXTRA || SEGMENT_IS_BAD || WRONG == EATS_MESSAGES)

static const struct nbox_host *lender;

static int create(const struct nbox_host *host, const struct nbox_next *next,
		  const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	(void)next, (void)kv, (void)n_kv;
	lender = host;
	*ret_model = NULL;
	return HAS(SILENT_CREATE) ? -1 : HAS(CREATE_SAYS_ONE) ? 1 : 0;
}

static void destroy(void *model)
{
	(void)model;
}

static int op(void *model, const struct nbox_op *the_op, double *ret_ns)
{
	(void)model, (void)the_op;
	*ret_ns = HAS(NAN_OP)        ? NAN
		  : HAS(NEGATIVE_OP) ? -1
		  : HAS(INFINITE_OP) ? INFINITY
		  : HAS(ENDLESS_OP)  ? 1e30
				     : 7;
	if (HAS(LOUD_ERROR))
		lender->error(lender, "bytes=%d is %s", 12, "odd");
	return HAS(ODD_CODE) ? 42 : HAS(SILENT_ERROR) || HAS(LOUD_ERROR) ? -1 : 0;
}

static int message(void *model, const struct nbox_op *the_op, const struct nbox_message *msg,
		   struct nbox_delay *ret)
{
	(void)model, (void)the_op, (void)msg;
	ret->latency_ns = HAS(NAN_LATENCY) ? NAN : 1;
	ret->occupancy_ns = HAS(NEGATIVE_OCCUPANCY) ? -1e-9 : 1;
	return 0;
}

static int extra(void *model, const struct nbox_op *the_op, double so_far_ns, int from_messages,
		 double *ret_extra_ns)
{
	(void)model, (void)the_op, (void)so_far_ns, (void)from_messages;
	*ret_extra_ns = HAS(NAN_EXTRA) ? NAN : 0;
	return 0;
}

static int segment(void *model, const struct nbox_segment *seg, double ns, double *ret_ns)
{
	(void)model, (void)seg, (void)ns;
	*ret_ns = HAS(NAN_SEGMENT) ? NAN : -5;
	if (HAS(LOUD_SEGMENT))
		lender->error(lender, "rank %u cannot compute", seg->rank);
	return HAS(LOUD_SEGMENT) ? -1 : 0;
}

struct larger {
	struct nbox_delaymodel table;
	void *of_tomorrow[4];
};

#if WRONG == 3
NBOX_EXPORT const char nbox_delaymodel[4] = "abc"; /* SMALL_SYMBOL */
int (*const unused[])(void) = {(void *)create,  (void *)destroy, (void *)op,
			       (void *)message, (void *)extra,   (void *)segment};
#else
#if WRONG == 4
#define TABLE something_else /* NO_SYMBOL */
#else
#define TABLE nbox_delaymodel
#endif
#define LARGER (HAS(NEWER))
NBOX_EXPORT const struct larger TABLE = {
	.table =
		{
			.abi = NBOX_DELAYMODEL_ABI - HAS(OTHER_ABI),
			.struct_size = HAS(TOO_SHORT)  ? 24
				       : HAS(TOO_LONG) ? 1 << 20
				       : LARGER        ? sizeof(struct larger)
						       : sizeof(struct nbox_delaymodel),
			.name = HAS(NO_NAME)      ? NULL
				: HAS(OTHER_NAME) ? "liar"
						  : NAME,
			.summary = "is wrong",
			.flags = DECORATES ? NBOX_DECORATOR : 0,
			.create = HAS(NO_CREATE) ? NULL : create,
			.destroy = HAS(NO_DESTROY) ? NULL : destroy,
			.op = DECORATES || HAS(NO_ANSWER) || HAS(NAN_LATENCY) ||
					      HAS(NEGATIVE_OCCUPANCY)
				      ? NULL
				      : op,
			.message = HAS(NAN_LATENCY) || HAS(NEGATIVE_OCCUPANCY) || HAS(EATS_MESSAGES)
					   ? message
					   : NULL,
			.extra = HAS(NAN_EXTRA) ? extra : NULL,
			.segment = SEGMENT_IS_BAD ? segment : NULL,
		},
	.of_tomorrow = {"unknown", "to", "this", "host"}};
#endif
