/* What an iteration consists of, for each way to train: a plan is printed as one line a stream
 * order, and compared with what the framework does. */
#include "cmocka-all.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "stepper/place.h"
#include "stepper/plan.h"

/* F0 B0 U: compute; stream letters: C compute, D data, G gather, S scatter, R replica, T tensor,
 * E expert, P pipe, and of eager ones O, B, b; D+3: event 3 is recorded on D; C-3: C waits for it;
 * D:allreduce(16). */
static void print_step(const struct step *s, char *to, size_t size)
{
	static const char letters[] = "CDGSRTEPOBb";
	static const char *const ops[] = {
		[STEP_ALL_REDUCE] = "allreduce",
		[STEP_ALL_GATHER] = "allgather",
		[STEP_REDUCE_SCATTER] = "reducescatter",
		[STEP_ALL_TO_ALL] = "alltoall",
	};
	char stream = letters[s->stream];
	size_t at = strlen(to);

	to += at;
	size -= at;
	switch ((int)s->kind) {
	case STEP_COMPUTE:
		snprintf(to, size,
			 s->layer == LAYER_NONE ? " U"
			 : s->ns < 1e6          ? " F%d"
						: " B%d",
			 s->layer);
		break;
	case STEP_RECORD:
		snprintf(to, size, " %c+%u", stream, s->event);
		break;
	case STEP_WAIT:
		snprintf(to, size, " %c-%u", stream, s->event);
		break;
	case STEP_PASS:
		snprintf(to, size, " %c:", stream);
		if (s->send_to != NOBODY)
			snprintf(to + strlen(to), size - 3, "to%d", s->send_to);
		if (s->recv_from != NOBODY)
			snprintf(to + strlen(to), size - 7, "from%d", s->recv_from);
		break;
	default:
		snprintf(to, size, " %c:%s(%u)", stream, ops[s->kind], (unsigned)s->bytes);
		if (s->parts > 1)
			snprintf(to + strlen(to), size - strlen(to), "x%u", s->parts);
	}
}

enum show { ALL, NO_EVENTS };

static void check(const char *text, unsigned world, unsigned rank, enum show show, const char *want)
{
	CLEANUP(job_deinit) struct job job = {0};
	CLEANUP(plan_deinit) struct plan plan = {0};
	struct place place;
	struct err err = {""};
	char got[4096] = "";

	if (job_parse("j", text, &job, &err) < 0 || job_fit(&job, world, &err) < 0)
		fail_msg("%s", err.text);
	place_find(&job, rank, &place);
	assert_int_equal(plan_make(&job, &place, &plan), 0);
	for (size_t i = 0; i < plan.n; i++)
		if (show == ALL ||
		    (plan.steps[i].kind != STEP_RECORD && plan.steps[i].kind != STEP_WAIT))
			print_step(&plan.steps[i], got, sizeof(got));
	assert_string_equal(got[0] ? got + 1 : got, want);
}

/* Forward passes are below 1 ms, so that print_step() can tell. */
#define LAYER "layer forward=1us backward=2ms "

static void ddp_reduces_full_buckets_beside_the_backward_pass(void **state)
{
	(void)state;
	check("bucket 24B\nupdate 1ms\nlayer x4 forward=1us backward=2ms params=16B", 2, 1, ALL,
	      "F0 F1 F2 F3 B3 B2 C+0 D-0 D:allreduce(32) D+1 B1 B0 C+2 D-2 D:allreduce(32) D+3 "
	      "C-1 C-3 U");
	/* what is left goes with the first layer */
	check("bucket 32B\nlayer x3 forward=1us backward=2ms params=16B", 2, 0, NO_EVENTS,
	      "F0 F1 F2 B2 B1 D:allreduce(32) B0 D:allreduce(16)");
	check("buckets 1,2\nlayer x2 forward=1us backward=2ms params=16B\n" LAYER "\n" LAYER
	      "params=8B",
	      2, 0, NO_EVENTS, "F0 F1 F2 F3 B3 D:allreduce(8) B2 B1 B0 D:allreduce(32)");
	check("group 8\n" LAYER "params=16B tp=8B\nparallel tp=2", 4, 0, NO_EVENTS,
	      "F0 T:allreduce(8) B0 T:allreduce(8) D:allreduce(16)x8");
}

static void accumulation_communicates_with_the_last_micro_batch_alone(void **state)
{
	(void)state;
	check("micro 3\n" LAYER "params=16B\nupdate 1ms", 2, 0, NO_EVENTS,
	      "F0 B0 F0 B0 F0 B0 D:allreduce(16) U");
	check("style fsdp\nmicro 2\n" LAYER "params=16B", 2, 0, NO_EVENTS,
	      "G:allgather(16) F0 G:allgather(16) B0 G:allgather(16) F0 G:allgather(16) B0 "
	      "S:reducescatter(16)");
}

static void a_rank_alone_only_computes(void **state)
{
	(void)state;
	check(LAYER "params=16B tp=1K moe=1K\nupdate 1ms", 1, 0, ALL, "F0 B0 U");
	check("style fsdp\n" LAYER "params=16B", 1, 0, ALL, "F0 B0");
}

static void fsdp_gathers_ahead_and_scatters_behind(void **state)
{
	(void)state;
	check("style fsdp\nlayer x3 forward=1us backward=2ms params=16B\nupdate 1ms", 4, 0,
	      NO_EVENTS,
	      "G:allgather(16) F0 G:allgather(16) F1 G:allgather(16) F2 " /* host order */
	      "G:allgather(16) G:allgather(16) B2 S:reducescatter(16) "
	      "G:allgather(16) B1 S:reducescatter(16) B0 S:reducescatter(16) U");
	check("style fsdp\nlayer x2 forward=1us backward=2ms params=16B\nupdate 1ms", 4, 0, ALL,
	      "C+0 G-0 "                                /* gathers begin after the update before */
	      "G:allgather(16) G+1 C-1 C+2 F0 "         /* layer 0 is taken: 2 */
	      "G:allgather(16) G+3 G-2 C-3 C+4 F1 "     /* the gather after this one waits for 2 */
	      "G-4 G:allgather(16) G+5 C-5 C+6 G-6 "    /* backward's first */
	      "G:allgather(16) G+7 B1 "                 /* the next one's, beside B1 */
	      "C+8 S-8 S:reducescatter(16) S+9 "        /* */
	      "C-7 C+10 G-10 B0 "                       /* */
	      "C-9 C+11 S-11 S:reducescatter(16) S+12 " /* only after the one before it */
	      "C-9 C-12 U");
}

static void layers_without_parameters_gather_nothing(void **state)
{
	(void)state;
	check("style fsdp\n" LAYER "params=16B\n" LAYER "\n" LAYER "params=8B", 2, 0, NO_EVENTS,
	      "G:allgather(16) F0 F1 G:allgather(8) F2 G:allgather(8) G:allgather(16) B2 "
	      "S:reducescatter(8) B1 B0 S:reducescatter(16)");
}

static void hsdp_reduces_the_shard_across_the_groups(void **state)
{
	(void)state;
	check("style hsdp\nshard 2\n" LAYER "params=16B", 4, 0, ALL,
	      "C+0 G-0 G:allgather(16) G+1 C-1 C+2 F0 G-2 G:allgather(16) G+3 C-3 C+4 G-4 B0 "
	      "C+5 S-5 S:reducescatter(16) S+6 R-6 R:allreduce(8) R+7 C-7");
}

static void tensor_and_expert_ops_are_waited_for_at_once(void **state)
{
	(void)state;
	check("parallel tp=2\n" LAYER "tp=8B", 2, 0, ALL,
	      "F0 C+0 T-0 T:allreduce(8) T+1 C-1 B0 C+2 T-2 T:allreduce(8) T+3 C-3");
	check(LAYER "moe=8B", 2, 0, NO_EVENTS,
	      "E:alltoall(8) F0 E:alltoall(8) E:alltoall(8) B0 E:alltoall(8)");
}

static void a_pipeline_is_1f1b(void **state)
{
	static const char text[] = "parallel pp=3\nmicro 4\nlayer x3 forward=1us backward=2ms "
				   "params=8B send=16B\n";

	(void)state;
	check(text, 3, 0, NO_EVENTS,
	      "F0 P:to1 F0 P:to1 F0 P:to1from1 B0 F0 P:to1from1 B0 P:from1 B0 P:from1 B0");
	check(text, 3, 1, NO_EVENTS,
	      "P:from0 F1 P:to2 P:from0 F1 P:to2from2 B1 P:to0from0 F1 P:to2from2 B1 "
	      "P:to0from0 F1 P:to2from2 B1 P:to0 P:from2 B1 P:to0");
	check(text, 3, 2, NO_EVENTS,
	      "P:from1 F2 B2 P:to1from1 F2 B2 P:to1from1 F2 B2 P:to1from1 F2 B2 P:to1");
	/* the gradients of a stage go with its last micro-batch */
	check("parallel pp=2\nmicro 1\nlayer x2 forward=1us backward=2ms params=8B send=16B", 4, 0,
	      NO_EVENTS, "F0 P:to1 P:from1 B0 D:allreduce(8)");
}

static void an_eager_pipeline_is_ahead(void **state)
{
	static const char text[] = "parallel pp=3\nmicro 4\nschedule eager\nlayer x3 forward=1us "
				   "backward=2ms params=8B send=16B\n";

	(void)state;
	/* receives stand one before the pass that needs them */
	check(text, 3, 0, NO_EVENTS,
	      "F0 P:to1 F0 P:to1 F0 P:to1 B:from1 F0 P:to1 B:from1 B0 B:from1 B0 B:from1 B0 B0");
	check(text, 3, 1, NO_EVENTS,
	      "P:from0 P:from0 F1 O:to2 P:from0 F1 O:to2 b:from2 P:from0 F1 O:to2 b:from2 B1 B:to0 "
	      "F1 O:to2 b:from2 B1 B:to0 b:from2 B1 B:to0 B1 B:to0");
	check(text, 3, 2, NO_EVENTS,
	      "O:from1 O:from1 F2 B2 b:to1 O:from1 F2 B2 b:to1 O:from1 F2 B2 b:to1 F2 B2 b:to1");
	/* a pass waits for its message, and its own goes on a stream of its own */
	check("parallel pp=2\nmicro 1\nschedule eager\nlayer x2 forward=1us backward=2ms send=16B",
	      2, 1, ALL, "C+0 P-0 P:from0 P+1 C-1 F1 B1 C+2 B-2 B:to0 B+3 C-3");
}

struct stage {
	struct plan plan;
	size_t at[STREAMS];  /* of the step that each stream stands at */
	bool is_there[4096]; /* events */
};

/* The step that @stream of @stage stands at; NULL: it has come to the end. */
static struct step *current(struct stage *stage, enum stream stream)
{
	size_t *at = &stage->at[stream];

	while (*at < stage->plan.n && stage->plan.steps[*at].stream != stream)
		++*at;
	return *at < stage->plan.n ? &stage->plan.steps[*at] : NULL;
}

/* A send is over when its receiver stands at a pass that receives from the sender; a pass is over
 * when its send and its receive are. Return: whether @stream of stage @i got on. */
static bool step_on(struct stage *stages, int i, enum stream stream)
{
	struct step *s = current(&stages[i], stream), *to;
	bool is_sent = false;

	if (!s)
		return false;
	if (s->kind == STEP_WAIT && !stages[i].is_there[s->event])
		return false;
	if (s->kind == STEP_RECORD)
		stages[i].is_there[s->event] = true;
	if (s->kind == STEP_PASS && s->send_to != NOBODY) {
		to = current(&stages[s->send_to], stream);
		if (!to || to->kind != STEP_PASS || to->recv_from != i || to->group != s->group)
			return false;
		s->send_to = to->recv_from = NOBODY;
		is_sent = true;
	}
	if (s->kind == STEP_PASS && s->recv_from != NOBODY)
		return is_sent;
	stages[i].at[stream]++;
	return true;
}

static bool get_on(struct stage *stages, int n)
{
	bool has_moved = false;

	for (int i = 0; i < n; i++)
		for (int stream = 0; stream < STREAMS; stream++)
			while (step_on(stages, i, stream))
				has_moved = true;
	return has_moved;
}

/* Also where no message goes before its receiver is there. */
static void play_pipeline(int pp, int micro, const char *schedule)
{
	CLEANUP(job_deinit) struct job job = {0};
	static struct stage stages[6];
	struct err err = {""};
	char text[128];

	memset(stages, 0, sizeof(stages));
	snprintf(text, sizeof(text),
		 "parallel pp=%d\nmicro %d\n%slayer x%d forward=1us backward=1us send=1B", pp,
		 micro, schedule, pp);
	assert_int_equal(job_parse("j", text, &job, &err), 0);
	assert_int_equal(job_fit(&job, (unsigned)pp, &err), 0);
	for (int i = 0; i < pp; i++) {
		struct place place;

		place_find(&job, (unsigned)i, &place);
		assert_int_equal(plan_make(&job, &place, &stages[i].plan), 0);
	}
	while (get_on(stages, pp))
		;
	for (int i = 0; i < pp; i++) {
		for (int stream = 0; stream < STREAMS; stream++)
			assert_null(current(&stages[i], stream));
		plan_deinit(&stages[i].plan);
	}
}

static void no_pipeline_waits_for_ever(void **state)
{
	(void)state;
	for (int pp = 1; pp <= 6; pp++) {
		for (int micro = 1; micro <= 8; micro++) {
			play_pipeline(pp, micro, "");
			if (pp > 1)
				play_pipeline(pp, micro, "schedule eager\n");
		}
	}
}

/* Every rank is in the groups that it names, at the place that it names. */
static void ranks_agree_on_their_groups(void **state)
{
	CLEANUP(job_deinit) struct job job = {0};
	struct place p, q;
	struct err err = {""};

	(void)state;
	assert_int_equal(job_parse("j",
				   "parallel tp=2 pp=3\nschedule eager\nstyle hsdp\nshard 2\n"
				   "layer x3 forward=1ms backward=1ms tp=1B moe=1B send=1B",
				   &job, &err),
			 0);
	assert_int_equal(job_fit(&job, 36, &err), 0);
	for (int g = 0; g < GROUPS; g++) {
		for (unsigned a = 0; a < 36; a++) {
			unsigned members = 0, below = 0, first = 36;

			place_find(&job, a, &p);
			for (unsigned b = 0; b < 36; b++) {
				place_find(&job, b, &q);
				if (q.groups[g].first != p.groups[g].first)
					continue;
				members++;
				below += b < a;
				first = b < first ? b : first;
				assert_int_equal(b, q.groups[g].first +
							    q.groups[g].index * q.groups[g].stride);
				assert_int_equal(place_color(&p, g), place_color(&q, g));
			}
			assert_int_equal(members, p.groups[g].n);
			assert_int_equal(below, p.groups[g].index);
			assert_int_equal(first, p.groups[g].first);
			assert_int_equal(p.groups[g].is_used, g != GROUP_DATA);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ddp_reduces_full_buckets_beside_the_backward_pass),
		cmocka_unit_test(accumulation_communicates_with_the_last_micro_batch_alone),
		cmocka_unit_test(a_rank_alone_only_computes),
		cmocka_unit_test(fsdp_gathers_ahead_and_scatters_behind),
		cmocka_unit_test(layers_without_parameters_gather_nothing),
		cmocka_unit_test(hsdp_reduces_the_shard_across_the_groups),
		cmocka_unit_test(tensor_and_expert_ops_are_waited_for_at_once),
		cmocka_unit_test(a_pipeline_is_1f1b),
		cmocka_unit_test(an_eager_pipeline_is_ahead),
		cmocka_unit_test(no_pipeline_waits_for_ever),
		cmocka_unit_test(ranks_agree_on_their_groups),
	};

	return cmocka_run_group_tests_name("stepper-plan", tests, NULL, NULL);
}
