/* NCCL's variables in full mode: what is set, what of the user's stays, what is said of it. */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/job/nccl-variables.h"

#define VARS_MAX 64
#define SELF "/opt/nbox/libnbox.so"

/* An environment of our own. */
struct vars {
	const char *name[VARS_MAX];
	char text[VARS_MAX][64];
	uint32_t n;
};

static const char *get(void *ctx, const char *name)
{
	struct vars *v = ctx;

	for (uint32_t i = 0; i < v->n; i++)
		if (!strcmp(v->name[i], name))
			return v->text[i];
	return NULL;
}

static void put(struct vars *v, const char *name, const char *text)
{
	uint32_t i = 0;

	while (i < v->n && strcmp(v->name[i], name) != 0)
		i++;
	assert_true(i < VARS_MAX);
	v->n += i == v->n;
	v->name[i] = name;
	snprintf(v->text[i], sizeof(v->text[i]), "%s", text);
}

static void decide_for(struct vars *v, int version, const char *self, int node,
		       struct nccl_variables *ret)
{
	struct nccl_variables_input in = {get, v, self, node, version, false};

	memset(ret, 0xff, sizeof(*ret)); /* all of it must be set */
	nccl_variables_decide(&in, ret);
	assert_true(ret->n <= NCCL_VARIABLES_MAX);
	for (uint32_t i = 0; i < ret->n; i++)
		put(v, ret->sets[i].name,
		    ret->sets[i].text ? ret->sets[i].text : ret->sets[i].number);
}

static void decide(struct vars *v, const char *self, int node, struct nccl_variables *ret)
{
	decide_for(v, 22809, self, node, ret);
}

static void test_of_old_versions(void **state)
{
	struct vars old = {.n = 0}, new = {.n = 0}, unknown = {.n = 0};
	struct nccl_variables plan;

	(void)state;
	decide_for(&old, 22707, SELF, 3, &plan);
	assert_string_equal(get(&old, "NCCL_NET_SHARED_BUFFERS"), "0");
	decide_for(&new, 22803, SELF, 3, &plan);
	assert_null(get(&new, "NCCL_NET_SHARED_BUFFERS"));
	decide_for(&unknown, 0, SELF, 3, &plan);
	assert_null(get(&unknown, "NCCL_NET_SHARED_BUFFERS"));
	decide_for(&unknown, 22707, SELF, 3, &plan); /* once NCCL has said its version */
	assert_string_equal(get(&unknown, "NCCL_NET_SHARED_BUFFERS"), "0");
}

static void test_nothing_set(void **state)
{
	struct vars v = {.n = 0};
	struct nccl_variables plan;

	(void)state;
	decide(&v, SELF, 3, &plan);
	assert_string_equal(get(&v, "NCCL_NET_PLUGIN"), SELF);
	assert_string_equal(get(&v, "NCCL_PROFILER_PLUGIN"), SELF);
	assert_string_equal(get(&v, "NCCL_NET"), "nbox");
	assert_string_equal(get(&v, "NCCL_ALGO"), "^NVLSTree");
	assert_string_equal(get(&v, "NCCL_PXN_DISABLE"), "1");
	assert_string_equal(get(&v, "NCCL_RAS_ENABLE"), "0");
	assert_string_equal(get(&v, "NCCL_HOSTID"), "nbox-3");
	assert_string_equal(plan.note, "");
	decide(&v, SELF, 3, &plan); /* a child that inherits it */
	assert_int_equal(plan.n, 0);
	assert_string_equal(plan.note, "");
}

static void test_unknown(void **state)
{
	struct vars v = {.n = 0};
	struct nccl_variables plan;

	(void)state;
	decide(&v, NULL, -1, &plan);
	assert_null(get(&v, "NCCL_NET_PLUGIN"));
	assert_null(get(&v, "NCCL_HOSTID"));
	decide(&v, NULL, 0, &plan); /* later the node is known */
	assert_int_equal(plan.n, 1);
	assert_string_equal(get(&v, "NCCL_HOSTID"), "nbox-0");
}

static void test_users(void **state)
{
	struct vars v = {.n = 0};
	struct nccl_variables plan;

	(void)state;
	put(&v, "NCCL_ALGO", "Ring");
	put(&v, "NCCL_HOSTID", "mine");
	put(&v, "NCCL_PXN_DISABLE", "0");
	put(&v, "NCCL_NET", "IB");
	put(&v, "NCCL_GIN_ENABLE", "0");
	put(&v, "NCCL_PAT_ENABLE", ""); /* as unset */
	decide(&v, SELF, 1, &plan);
	assert_string_equal(get(&v, "NCCL_ALGO"), "Ring");
	assert_string_equal(get(&v, "NCCL_HOSTID"), "mine");
	assert_string_equal(get(&v, "NCCL_PXN_DISABLE"), "1");
	assert_string_equal(get(&v, "NCCL_NET"), "nbox");
	assert_string_equal(get(&v, "NCCL_PAT_ENABLE"), "0");
	assert_string_equal(plan.note,
			    "not as the job set them, since --nccl full needs others: NCCL_NET=IB, "
			    "NCCL_PXN_DISABLE=0");
}

static void test_tuner(void **state)
{
	struct nccl_variables_input in = {get, NULL, SELF, 3, 22809, true};
	struct vars v = {.n = 0}, own = {.n = 0};
	struct nccl_variables plan;

	(void)state;
	decide(&v, SELF, 3, &plan); /* no decision file */
	assert_null(get(&v, "NCCL_TUNER_PLUGIN"));
	in.ctx = &v;
	nccl_variables_decide(&in, &plan);
	assert_int_equal(plan.n, 1);
	assert_string_equal(plan.sets[0].name, "NCCL_TUNER_PLUGIN");
	assert_string_equal(plan.sets[0].text, SELF);
	put(&v, "NCCL_TUNER_PLUGIN", SELF);
	nccl_variables_decide(&in, &plan); /* again, as in a child */
	assert_int_equal(plan.n, 0);
	assert_string_equal(plan.note, "");
	/* the user's stays */
	put(&own, "NCCL_TUNER_PLUGIN", "ofi");
	decide(&own, SELF, 3, &plan);
	in.ctx = &own;
	nccl_variables_decide(&in, &plan);
	assert_int_equal(plan.n, 0);
	assert_string_equal(plan.note, "NCCL has the tuner NCCL_TUNER_PLUGIN=ofi, so that the "
				       "decision file does not count for what it takes");
}

/* A note of all of them, each as long as can be, is cut and stays terminated. */
static void test_long_note(void **state)
{
	struct vars v = {.n = 0};
	struct nccl_variables plan, again;
	char text[64];

	(void)state;
	decide(&v, SELF, -1, &plan);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (uint32_t i = 0; i < plan.n; i++)
		put(&v, plan.sets[i].name, text);
	decide(&v, SELF, -1, &again);
	assert_int_equal(again.n, plan.n - 1); /* NCCL_ALGO stays */
	assert_int_equal(strlen(again.note), sizeof(again.note) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_set), cmocka_unit_test(test_of_old_versions),
		cmocka_unit_test(test_unknown),     cmocka_unit_test(test_users),
		cmocka_unit_test(test_long_note),   cmocka_unit_test(test_tuner),
	};

	return cmocka_run_group_tests_name("nccl-variables", tests, NULL, NULL);
}
