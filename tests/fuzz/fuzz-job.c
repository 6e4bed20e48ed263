/* The reader of the stepper's job files on any text: what it accepts fits the world that it names,
 * and gives each rank a plan whose streams wait only for events that were recorded before. */
#include "fuzz.h"

#include "stepper/plan.h"

#define WORLD_MAX 4096
#define WORK_MAX 4096 /* layers x micro-batches of a plan that is made */

static void check_plan(const struct job *job, uint32_t rank)
{
	struct place place;
	struct plan plan;

	place_find(job, rank, &place);
	for (int g = 0; g < GROUPS; g++)
		REQUIRE(place.groups[g].first + place.groups[g].index * place.groups[g].stride ==
			rank);
	REQUIRE(plan_make(job, &place, &plan) == 0);
	for (size_t i = 0, n_recorded = 0; i < plan.n; i++) {
		const struct step *s = &plan.steps[i];

		if (s->kind == STEP_RECORD)
			REQUIRE(s->event == n_recorded++);
		else if (s->kind == STEP_WAIT)
			REQUIRE(s->event < n_recorded);
		else if (s->kind != STEP_COMPUTE)
			REQUIRE(s->bytes > 0 && place.groups[s->group].is_used);
	}
	plan_deinit(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct err err = {""};
	struct job job;
	uint64_t world;

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (job_parse("fuzz", text, &job, &err) < 0) {
		REQUIRE(err.text[0]);
		free(text);
		return 0;
	}
	free(text);
	REQUIRE(job.n_layers > 0 && job.tp > 0 && job.pp > 0 && job.micro > 0);
	world = (uint64_t)job.tp * job.pp * (job.dp ? job.dp : job.shard ? job.shard : 2);
	if (world <= WORLD_MAX && job_fit(&job, (uint32_t)world, &err) == 0 &&
	    job.micro <= WORK_MAX / job.n_layers) {
		REQUIRE((uint64_t)job.tp * job.pp * job.dp == world);
		check_plan(&job, 0);
		check_plan(&job, (uint32_t)world - 1);
	}
	job_deinit(&job);
	return 0;
}
