/* The critical path of a predicted iteration. */
#pragma once

#include "predict/predict.h"

enum path_part {
	PATH_KERNEL, /* a kernel or collective runs */
	PATH_GAP,    /* between two of a stream */
	PATH_LAUNCH, /* from its launch until it runs */
	PATH_HOST    /* the host is at work */
};

struct path_segment {
	enum path_part part;
	uint32_t rank;
	uint32_t kernel; /* that runs, or was to; PATH_HOST: PREDICT_NONE */
	double begin, end;
};

/* Back from the end over what each waited for last. *ret: in the order of time, without gaps from
 * the beginning to the end of the rank that takes longest; the caller's, by free(). Return: 0;
 * -ENOMEM. */
int path_find(const struct predict *p, struct path_segment **ret, uint32_t *ret_n);
