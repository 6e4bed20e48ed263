/* What a host does around the kernels that it launches, by the operators of a trace: T1 to T5 of
 * Lin et al. (predict.h has what they are). */
#pragma once

#include <stdio.h>

#include "predict/predict.h"
#include "trace/trace.h"

struct overhead {
	double mean_ns, std_ns;
	uint64_t n; /* 0: there was none */
};

enum overhead_kind { OVERHEAD_T1, OVERHEAD_T2, OVERHEAD_T3, OVERHEAD_T4, OVERHEAD_T5, OVERHEADS };

struct overhead_name {
	char *name; /* owned; of an operator (T2, T3, T5), or of a call (T4) */
	struct overhead of[OVERHEADS];
};

struct overheads {
	struct overhead all[OVERHEADS]; /* of all names; T1 has none */
	struct overhead_name *names;    /* owned; sorted */
	uint32_t n;
};

/* What the profiler itself costs the host: each event of the host, and each launch besides. */
struct overhead_profiler {
	double host_ns, launch_ns;
};
/* As Lin et al. have it: 2 and 4 us. */
extern const struct overhead_profiler overhead_profiler_paper;

#define OVERHEAD_GAP_MAX_NS 200e3 /* a longer pause between two ops is none of T1 */

/* Of all ranks and steps. What is beyond one and a half times the quartiles' distance from them
 * does not count. Return: 0, also where the trace knows no host; -ENOMEM. */
int overheads_find(const struct trace *t, const struct overhead_profiler *profiler,
		   struct overheads *ret);
void overheads_deinit(struct overheads *o);
/* For an op and a call of these names; NULL or not known: the mean of all. */
struct predict_host overheads_of(const struct overheads *o, const char *op, const char *call);

/* JSON. Return: 0; -ENOMEM. */
int overheads_write(const struct overheads *o, FILE *to);
/* The same read. @file: for sentences. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int overheads_parse(const char *file, const char *text, size_t len, struct overheads *ret,
		    struct err *err);
