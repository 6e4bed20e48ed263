/* See nccl-variables.h. The names are those of NCCL 2.23 to 2.30; a version that does not know one
 * does not look at it. */
#include "shim/job/nccl-variables.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* TUNER: unless set, where a decision file says what NCCL is to take. */
enum how { MUST, UNLESS_SET, TUNER };

/* @value: NULL: the path of libnbox.so. */
static const struct variable {
	const char *name, *value;
	enum how how;
	int before; /* versions of NCCL before this one; 0: all */
} variables[] = {
	{"NCCL_NET_PLUGIN", NULL, MUST, 0},
	{"NCCL_PROFILER_PLUGIN", NULL, MUST, 0},
	{"NCCL_NET", "nbox", MUST, 0},
	/* keeps the plug-in open: NCCL 2.28.9 does not find it again once it has closed it */
	{"NCCL_NET_PLUGIN_REF_COUNT", "1", MUST, 0},
	/* other ways between nodes */
	{"NCCL_MNNVL_ENABLE", "0", MUST, 0},
	{"NCCL_COLLNET_ENABLE", "0", MUST, 0},
	{"NCCL_OOB_NET_ENABLE", "0", MUST, 0},
	{"NCCL_GIN_ENABLE", "0", MUST, 0},
	{"NCCL_WIN_ENABLE", "0", MUST, 0},
	{"NCCL_LOCAL_REGISTER", "0", MUST, 0},
	{"NCCL_GRAPH_REGISTER", "0", MUST, 0},
	/* a thread that connects to ranks which do not exist */
	{"NCCL_RAS_ENABLE", "0", MUST, 0},
	/* the network carries what crosses a node's border in the op's own rings and trees, from
	 * the rank itself, and nothing else */
	{"NCCL_PXN_DISABLE", "1", MUST, 0},
	{"NCCL_NET_DISABLE_INTRA", "1", MUST, 0},
	{"NCCL_PAT_ENABLE", "0", MUST, 0},
	{"NCCL_ALLGATHERV_ENABLE", "0", MUST, 0},
	{"NCCL_NET_OPTIONAL_RECV_COMPLETION", "0", MUST, 0},
	/* 2.26 and 2.27 tell of the first only of several sends or receives that share memory */
	{"NCCL_NET_SHARED_BUFFERS", "0", MUST, 22800},
	{"NCCL_ALGO", "^NVLSTree", UNLESS_SET, 0},
	{"NCCL_TUNER_PLUGIN", NULL, TUNER, 0},
};

static const char *get(const struct nccl_variables_input *in, const char *name)
{
	const char *text = in->get(in->ctx, name);

	return text && *text ? text : NULL;
}

/* The user's tuner stays. */
static void tell_tuner(struct nccl_variables *v, const char *old)
{
	size_t at = strlen(v->note);

	snprintf(v->note + at, sizeof(v->note) - at,
		 "%sNCCL has the tuner NCCL_TUNER_PLUGIN=%.40s, so that the decision file does not "
		 "count for what it takes",
		 at ? "; " : "", old);
}

static void tell(struct nccl_variables *v, const char *name, const char *old)
{
	size_t at = strlen(v->note);

	snprintf(v->note + at, sizeof(v->note) - at, "%s%s=%.40s",
		 at ? ", " : "not as the job set them, since --nccl full needs others: ", name,
		 old);
}

void nccl_variables_decide(const struct nccl_variables_input *in, struct nccl_variables *ret)
{
	_Static_assert(ARRAY_SIZE(variables) < NCCL_VARIABLES_MAX, "room for all, and NCCL_HOSTID");

	ret->n = 0;
	ret->note[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const struct variable *var = &variables[i];
		const char *text = var->value ? var->value : in->self, *old = get(in, var->name);

		if (var->before && !(in->version && in->version < var->before))
			continue;
		if (var->how == TUNER && !in->tunes)
			continue;
		if (!text || (old && (!strcmp(old, text) || var->how == UNLESS_SET)))
			continue;
		if (old && var->how == TUNER) {
			tell_tuner(ret, old);
			continue;
		}
		if (old)
			tell(ret, var->name, old);
		ret->sets[ret->n].name = var->name;
		ret->sets[ret->n++].text = text;
	}
	if (in->node < 0 || get(in, "NCCL_HOSTID"))
		return;
	ret->sets[ret->n].name = "NCCL_HOSTID";
	ret->sets[ret->n].text = NULL;
	snprintf(ret->sets[ret->n].number, sizeof(ret->sets[0].number), "nbox-%d", in->node);
	ret->n++;
}

/* --- this process ------------------------------------------------------------------------- */

static char the_note[sizeof(((struct nccl_variables *)NULL)->note)];

static const char *get_env(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

void nccl_variables_set(int node, int version, bool tunes)
{
	static char self[PATH_MAX]; /* NCCL opens it by this path, and gets what is loaded */
	struct nccl_variables_input in = {.get = get_env,
					  .node = node,
					  .version = version,
					  .tunes = tunes};
	struct nccl_variables v;
	Dl_info info;

	/* relative where LD_PRELOAD was, when the constructor calls */
	if (!self[0] && dladdr((void *)(uintptr_t)nccl_variables_set, &info) && info.dli_fname &&
	    !realpath(info.dli_fname, self))
		self[0] = '\0';
	in.self = self[0] ? self : NULL;
	nccl_variables_decide(&in, &v);
	for (uint32_t i = 0; i < v.n; i++)
		setenv(v.sets[i].name, v.sets[i].text ? v.sets[i].text : v.sets[i].number, 1);
	if (v.note[0])
		memcpy(the_note, v.note, sizeof(the_note));
}

void nccl_variables_set_early(void)
{
	const char *mode = getenv("NBOX_NCCL_MODE");

	if (mode && !strcmp(mode, "full"))
		nccl_variables_set(-1, 0, false);
}

const char *nccl_variables_note(void)
{
	return the_note;
}
