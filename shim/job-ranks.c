/* See job-ranks.h. A few lines of Python look for the list, on a thread of their own: Python
 * calls the job's signal handlers on its main thread, between any two steps, and what they
 * raise (KeyboardInterrupt) would end here instead of in the job. They look in this order:
 *
 *   1. frames of the calling thread in torch.distributed: a group that is being made (split_group,
 *      _new_process_group_helper), or is being used for the first time; of send and recv the
 *      two ranks, which have a communicator of their own
 *   2. of all groups that the process knows, the only list that has this size and this rank
 *      at this place; not for two ranks, since a pair of a group's ranks has a communicator
 *      of its own
 *
 * What does not look as expected (another version) is not known, never an error. */
#include "shim/job-ranks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/quiet-thread.h"

#include "base/log.h"

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
	"try:\n"
	"  l = look(n, rank, world)\n"
	"  out = b''.join(int(r).to_bytes(4, sys.byteorder) for r in l) if l else b''\n"
	"except Exception:\n"
	"  out = b''\n";

typedef struct py_object py_object;

/* Python's C interface, the part that all versions since 3.2 have. */
struct python {
	int (*IsInitialized)(void);
	int (*Ensure)(void); /* PyGILState_STATE is an enum */
	void (*Release)(int);
	void *(*SaveThread)(void);
	void (*RestoreThread)(void *state);
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
		{"PyGILState_Ensure", (void **)&py->Ensure},
		{"PyGILState_Release", (void **)&py->Release},
		{"PyEval_SaveThread", (void **)&py->SaveThread},
		{"PyEval_RestoreThread", (void **)&py->RestoreThread},
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

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
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
	uint32_t n, *ranks; /* the answer */
};

/* With the interpreter's lock. */
static void ask(struct question *q, py_object *vars)
{
	const struct python *py = &q->py;
	py_object *code = py->Compile(source, "<nbox>", PY_FILE_INPUT);
	py_object *result = code ? py->Eval(code, vars, vars) : NULL, *out;
	long size;

	out = result ? py->GetItemString(vars, "out") : NULL;
	size = out ? py->Size(out) : 0;
	if (size > 0 && (unsigned long)size <= (unsigned long)q->most * 4) {
		q->ranks = malloc((size_t)size);
		if (q->ranks) {
			memcpy(q->ranks, py->AsString(out), (size_t)size);
			q->n = (uint32_t)(size / 4);
		}
	}
	py->DecRef(result);
	py->DecRef(code);
}

static void *asker(void *ctx)
{
	struct question *q = ctx;
	const struct python *py = &q->py;
	int state = py->Ensure(); /* does not return when Python ends meanwhile */
	py_object *vars = py->Dict(), *builtins = vars ? py->Builtins() : NULL;

	if (builtins) {
		py->SetItemString(vars, "__builtins__", builtins);
		set_number(py, vars, "n", q->n_ranks);
		set_number(py, vars, "rank", q->rank);
		set_number(py, vars, "world", q->world_rank);
		set_number(py, vars, "thread", q->thread);
		ask(q, vars);
		py->Clear();
	}
	py->DecRef(vars);
	py->Release(state);
	return NULL;
}

uint32_t job_ranks(uint32_t n_ranks, uint32_t rank, uint32_t world_rank, uint32_t most,
		   uint32_t **ret)
{
	struct question q = {.thread = (unsigned long)pthread_self(), .n_ranks = n_ranks,
			     .rank = rank, .world_rank = world_rank, .most = most};
	pthread_t thread;
	void *saved;
	int state, rc;

	if (!find(&q.py) || !q.py.IsInitialized() ||
	    (q.py.IsFinalizing && q.py.IsFinalizing()))
		return 0;
	rc = quiet_thread(&thread, NULL, asker, &q);
	if (rc)
		return 0;
	/* whether this thread holds the interpreter's lock or not: the other one gets it */
	state = q.py.Ensure();
	saved = q.py.SaveThread();
	pthread_join(thread, NULL);
	q.py.RestoreThread(saved);
	q.py.Release(state);
	if (q.n)
		*ret = q.ranks;
	log_debug("the job's own list of ranks: %u of them", q.n);
	return q.n;
}
