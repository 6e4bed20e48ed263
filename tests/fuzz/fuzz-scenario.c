/* The reader of scenario files on any bytes: an error with a place, or what-ifs that have a name,
 * and expectations and steps that are sound. */
#include "fuzz.h"

#include <string.h>

#include "config/scenario.h"
#include "scenario/expect.h"
#include "scenario/step-count.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario s;
	struct step_rule rule;
	struct expect expect;
	struct err err = {""};

	if (scenario_parse("fuzz", (const char *)data, size, &s, &err) < 0) {
		REQUIRE(strncmp(err.text, "fuzz:", 5) == 0);
		return 0;
	}
	REQUIRE(s.steps.n <= 1 && s.what_ifs.n >= s.n_events);
	for (size_t i = 0; i < s.what_ifs.n; i++)
		REQUIRE(s.what_ifs.items[i].text[0] && s.what_ifs.items[i].line > 0);
	for (size_t i = 0; i < s.expects.n; i++)
		REQUIRE(expect_parse(s.expects.items[i].text, &expect, &err) == 0);
	for (size_t i = 0; i < s.steps.n; i++)
		REQUIRE(step_rule_parse(s.steps.items[i].text, &rule, &err) == 0);
	scenario_deinit(&s);
	return 0;
}
