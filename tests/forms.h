/* Each collective over each algorithm that it has. */
#pragma once

#include "schedule/schedule.h"

static const struct {
	enum coll_kind kind;
	enum sched_algo algo;
} forms[] = {
	{COLL_ALLREDUCE, SCHED_RING},  {COLL_ALLREDUCE, SCHED_TREE},
	{COLL_ALLGATHER, SCHED_RING},  {COLL_REDUCESCATTER, SCHED_RING},
	{COLL_BROADCAST, SCHED_RING},  {COLL_BROADCAST, SCHED_CHAIN},
	{COLL_REDUCE, SCHED_RING},     {COLL_REDUCE, SCHED_CHAIN},
	{COLL_ALLTOALL, SCHED_DIRECT}, {COLL_GATHER, SCHED_DIRECT},
	{COLL_SCATTER, SCHED_DIRECT},
};
#define N_FORMS (sizeof(forms) / sizeof(forms[0]))
