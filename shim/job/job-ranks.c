/* See job-ranks.h. A few lines of Python look for the list, on a thread of their own: on
 * the main thread Python calls the job's signal handlers between any two steps, and what they raise
 * (KeyboardInterrupt) would end here instead of in the job. They look at:
 *
 *   1. frames of the calling thread in torch.distributed: a group that is being made (split_group,
 *      _new_process_group_helper), or is being used for the first time; of send and recv the
 *      two ranks, which have a communicator of their own
 *   2. of all groups that the process knows, the only list that has this size and this rank
 *      at this place; not for two ranks, since a pair of a group's ranks has a communicator
 *      of its own
 *
 * A PyTorch that looks different gives no list, never an error.
 *
 * The interpreter's lock. The thread that holds it may be waiting for the communicator that is
 * being made here. So the caller waits for the looking thread at most JOB_RANKS_WAIT_NS, and then
 * leaves it. That thread ends by itself when it gets the lock; until then nobody is asked again. A
 * caller that holds the lock itself does not give it up: it might not get it back. PyTorch's
 * callers never hold it, nor do those that come through ctypes.CDLL. */
#include "shim/job/job-ranks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "shim/job/quiet-thread.h"

static const char source[] =
	"import sys\n"
	"def fits(l, n, rank, world):\n"
	"  return l and len(l) > rank and l[rank] == world and (n == 0 or len(l) == n)\n"
	"def pair(l, v, world):\n"
	"  for k in ('group_dst', 'group_src'):\n"
	"    if v.get(k) is not None: return [l[i] for i in sorted((v[k], l.index(world)))]\n"
	"  for k in ('dst', 'src'):\n"
	"    if v.get(k) is not None: return sorted((v[k], world), key=l.index)\n"
	"def look(n, rank, world):\n"
	"  d = sys.modules.get('torch.distributed.distributed_c10d')\n"
	"  if d is None: return None\n"
	"  known = d._world.pg_group_ranks\n"
	"  f = sys._current_frames().get(thread)\n"
	"  while f is not None:\n"
	"    if f.f_globals.get('__name__') == d.__name__:\n"
	"      v, name, l = f.f_locals, f.f_code.co_name, None\n"
	"      if name == 'split_group' and v.get('parent_group_to_global_ranks'):\n"
	"        l = [v['parent_group_to_global_ranks'][r] for r in v.get('my_group') or []]\n"
	"      elif name == '_new_process_group_helper':\n"
	"        l = v.get('global_ranks_in_group')\n"
	"      else:\n"
	"        for k in ('group', 'pg', 'process_group'):\n"
	"          m = known.get(v.get(k)) if v.get(k) is not None else None\n"
	"          if m: l = sorted(m, key=m.get)\n"
	"        if l and n == 2 and name in ('send', 'recv', 'isend', 'irecv'):\n"
	"          l = pair(l, v, world)\n"
	"      if fits(l, n, rank, world): return l\n"
	"    f = f.f_back\n"
	"  if n <= 2: return None\n"
	"  lists = {tuple(sorted(m, key=m.get)) for m in known.values() if len(m) == n}\n"
	"  lists = [l for l in lists if fits(l, n, rank, world)]\n"
	"  return lists[0] if len(lists) == 1 else None\n"
	"def pack(l):\n"
	"  return b''.join(int(r).to_bytes(4, sys.byteorder) for r in l)\n"
	"def groups(longest):\n"
	"  d, out = sys.modules.get('torch.distributed.distributed_c10d'), b''\n"
	"  for pg, name in list(d._world.pg_names.items()) if d else []:\n"
	"    m, name = d._world.pg_group_ranks.get(pg), name.encode()\n"
	"    if m and name and len(name) <= longest and pg is not d._world.default_pg:\n"
	"      out += name.ljust(longest + 1, b'\\0') + pack([len(m)]) + pack(sorted(m, key=m.get))\n"
	"  return out\n"
	"try:\n"
	"  if longest: out = groups(longest)\n"
	"  else: out = pack(look(n, rank, world) or [])\n"
	"except Exception:\n"
	"  out = b''\n";

typedef struct py_object py_object;

/* Python's C interface, the part that all versions since 3.4 have. */
struct python {
	int (*IsInitialized)(void);
	int (*Check)(void);
	int (*Ensure)(void); /* PyGILState_STATE is an enum */
	void (*Release)(int);
	py_object *(*Dict)(void);
	int (*SetItemString)(py_object *dict, const char *key, py_object *value);
	py_object *(*GetItemString)(py_object *dict, const char *key); /* borrowed */
	py_object *(*FromUnsignedLong)(unsigned long value);
	py_object *(*Compile)(const char *text, const char *file, int start);
	py_object *(*Eval)(py_object *code, py_object *globals, py_object *locals);
	py_object *(*Builtins)(void); /* borrowed */
	char *(*AsString)(py_object *bytes);
	long (*Size)(py_object *bytes); /* Py_ssize_t */
	void (*DecRef)(py_object *o);
	void (*Clear)(void);
	int (*IsFinalizing)(void); /* may be NULL; before 3.13 it begins with _ */
};

#define PY_FILE_INPUT 257 /* Py_file_input */

static bool find(struct python *py)
{
	const struct {
		const char *name;
		void **to;
	} symbols[] = {
		{"Py_IsInitialized", (void **)&py->IsInitialized},
		{"PyGILState_Check", (void **)&py->Check},
		{"PyGILState_Ensure", (void **)&py->Ensure},
		{"PyGILState_Release", (void **)&py->Release},
		{"PyDict_New", (void **)&py->Dict},
		{"PyDict_SetItemString", (void **)&py->SetItemString},
		{"PyDict_GetItemString", (void **)&py->GetItemString},
		{"PyLong_FromUnsignedLong", (void **)&py->FromUnsignedLong},
		{"Py_CompileString", (void **)&py->Compile},
		{"PyEval_EvalCode", (void **)&py->Eval},
		{"PyEval_GetBuiltins", (void **)&py->Builtins},
		{"PyBytes_AsString", (void **)&py->AsString},
		{"PyBytes_Size", (void **)&py->Size},
		{"Py_DecRef", (void **)&py->DecRef},
		{"PyErr_Clear", (void **)&py->Clear},
	};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		*symbols[i].to = dlsym(RTLD_DEFAULT, symbols[i].name);
		if (!*symbols[i].to)
			return false;
	}
	py->IsFinalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
	if (!py->IsFinalizing)
		py->IsFinalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
	return true;
}

static void set_number(const struct python *py, py_object *dict, const char *key,
		       unsigned long value)
{
	py_object *number = py->FromUnsignedLong(value);

	if (number)
		py->SetItemString(dict, key, number);
	py->DecRef(number);
}

struct question {
	struct python py;
	unsigned long thread; /* Python's number of the one that asks */
	uint32_t n_ranks, rank, world_rank, most;
	uint32_t longest;     /* 0: the ranks of one are asked for; else groups with such names */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t answered;
	bool is_answered, is_left; /* the second to come frees the question */
	uint32_t n, *ranks;        /* the answer */
};

#define GROUPS_WORDS (1u << 20) /* of all groups together; longer lists are not looked at */

/* Threads that still wait for the interpreter's lock after their caller has left. */
static _Atomic unsigned int n_left;

static struct question *question_new(const struct question *what)
{
	struct question *q = malloc(sizeof(*q));
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	*q = *what;
	q->thread = (unsigned long)pthread_self();
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->answered, &attr);
	pthread_condattr_destroy(&attr);
	return q;
}

static struct question *question_free(struct question *q)
{
	pthread_cond_destroy(&q->answered);
	pthread_mutex_destroy(&q->lock);
	free(q->ranks);
	free(q);
	return NULL;
}

/* With the interpreter's lock. */
static uint32_t look(const struct question *q, py_object *vars, uint32_t **ret)
{
	const struct python *py = &q->py;
	py_object *code = py->Compile(source, "<nbox>", PY_FILE_INPUT);
	py_object *result = code ? py->Eval(code, vars, vars) : NULL, *out;
	uint32_t *ranks = NULL;
	long size;

	out = result ? py->GetItemString(vars, "out") : NULL;
	size = out ? py->Size(out) : 0;
	if (size > 0 && (unsigned long)size <= (unsigned long)q->most * 4) {
		ranks = malloc((size_t)size);
		if (ranks)
			memcpy(ranks, py->AsString(out), (size_t)size);
	}
	py->DecRef(result);
	py->DecRef(code);
	if (!ranks)
		return 0;
	*ret = ranks;
	return (uint32_t)(size / 4);
}

static bool is_left(struct question *q)
{
	bool is;

	pthread_mutex_lock(&q->lock);
	is = q->is_left;
	pthread_mutex_unlock(&q->lock);
	return is;
}

static void *asker(void *ctx)
{
	struct question *q = ctx;
	const struct python py = q->py;
	int state = py.Ensure(); /* does not return when Python ends meanwhile */
	py_object *vars = is_left(q) ? NULL : py.Dict(), *builtins = vars ? py.Builtins() : NULL;
	uint32_t *ranks = NULL, n = 0;
	bool left;

	if (builtins) {
		py.SetItemString(vars, "__builtins__", builtins);
		set_number(&py, vars, "n", q->n_ranks);
		set_number(&py, vars, "rank", q->rank);
		set_number(&py, vars, "world", q->world_rank);
		set_number(&py, vars, "thread", q->thread);
		set_number(&py, vars, "longest", q->longest);
		n = look(q, vars, &ranks);
		py.Clear();
	}
	py.DecRef(vars);
	py.Release(state);
	pthread_mutex_lock(&q->lock);
	q->ranks = ranks;
	q->n = n;
	q->is_answered = true;
	left = q->is_left;
	pthread_cond_signal(&q->answered);
	pthread_mutex_unlock(&q->lock);
	if (left) {
		question_free(q);
		atomic_fetch_sub(&n_left, 1);
	}
	return NULL;
}

/* Return: whether the answer has come; false: the question now belongs to the thread. */
static bool wait_for_answer(struct question *q)
{
	uint64_t until_ns = clock_now_ns() + JOB_RANKS_WAIT_NS;
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
				 .tv_nsec = (long)(until_ns % NS_PER_S)};
	bool is_answered;
	int r = 0;

	pthread_mutex_lock(&q->lock);
	while (!q->is_answered && !r)
		r = pthread_cond_timedwait(&q->answered, &q->lock, &until);
	is_answered = q->is_answered;
	if (!is_answered) {
		q->is_left = true;
		atomic_fetch_add(&n_left, 1);
	}
	pthread_mutex_unlock(&q->lock);
	return is_answered;
}

/* Asks @what. Return: words of the answer, in *ret, the caller's to free(); 0: none. */
static uint32_t put(struct question *what, uint32_t **ret)
{
	const struct python *py = &what->py;
	struct question *q;
	uint32_t n;

	if (!find(&what->py) || !py->IsInitialized() || (py->IsFinalizing && py->IsFinalizing()))
		return 0;
	if (py->Check() || atomic_load(&n_left)) {
		log_debug(
			"the job's lists of ranks are not asked for: the interpreter's lock is held");
		return 0;
	}
	q = question_new(what);
	if (!q)
		return 0;
	if (quiet_thread(NULL, asker, q)) {
		question_free(q);
		return 0;
	}
	if (!wait_for_answer(q)) {
		log_warn(
			"PyTorch could not be asked who is in a communicator: a thread of the job has kept "
			"Python's interpreter lock for %d s; its members are found otherwise, and the "
			"summary says how (NBOX_ASK_PYTHON=0: PyTorch is never asked)",
			(int)(JOB_RANKS_WAIT_NS / NS_PER_S));
		return 0;
	}
	n = q->n;
	if (n) {
		*ret = q->ranks;
		q->ranks = NULL;
	}
	question_free(q);
	return n;
}

uint32_t job_ranks(uint32_t n_ranks, uint32_t rank, uint32_t world_rank, uint32_t most,
		   uint32_t **ret)
{
	struct question what = {.n_ranks = n_ranks,
				.rank = rank,
				.world_rank = world_rank,
				.most = most};
	uint32_t n = put(&what, ret);

	log_debug("the job's own list of ranks: %u of them", n);
	return n;
}

void job_groups(void (*each)(const struct wire_group *g, const uint32_t *ranks))
{
	struct question what = {.most = GROUPS_WORDS, .longest = WIRE_GROUP_NAME_MAX - 1};
	const uint32_t head = sizeof(struct wire_group) / sizeof(uint32_t);
	CLEANUP(freep) uint32_t *words = NULL;
	uint32_t n = put(&what, &words), at = 0;
	struct wire_group g;

	for (; n - at > head; at += head + g.n_ranks) {
		memcpy(&g, words + at, sizeof(g));
		if (g.n_ranks > n - at - head)
			break;
		each(&g, words + at + head);
	}
}
