/* A scenario file becomes options: --what-if, --steps, --expect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/config.h"
#include "config/scenario.h"
#include "config/yaml-file.h"

/* Behind what was given elsewhere. */
static int add(struct config *c, enum option_id id, const struct scenario_list *l)
{
	struct config_value *v = &c->values[id];
	enum config_source source = v->source > SOURCE_FILE ? v->source : SOURCE_FILE;

	for (size_t i = 0; i < l->n; i++) {
		if (value_add(v, source, l->items[i].text, l->items[i].line, l->items[i].column) <
		    0)
			return -ENOMEM;
		v->items[v->n_items - 1].file = c->scenario;
	}
	return 0;
}

int config_scenario(struct config *c, struct err *err)
{
	CLEANUP(scenario_deinit) struct scenario s = {0};
	CLEANUP(freep) char *text = NULL;
	struct config_value *v = &c->values[CONFIG_SCENARIO];
	size_t n;
	int r;

	if (!v->n_items)
		return 0;
	if (c->scenario)
		return err_set(err, EINVAL, "%s: a second scenario; %s was read before",
			       v->items[0].text, c->scenario);
	c->scenario = steal_ptr(v->items[0].text);
	value_clear(v);
	r = yaml_load(c->scenario, "scenario", &text, &n, err);
	if (r == 0)
		r = scenario_parse(c->scenario, text, n, &s, err);
	if (r < 0)
		return r;
	for (int i = 0; i < 2 && c->is_of_run; i++) {
		v = &c->values[i ? CONFIG_EXPECT : CONFIG_WHAT_IF];
		if (v->source == SOURCE_FILE)
			value_clear(v);
	}
	v = &c->values[CONFIG_STEPS];
	if (s.steps.n && v->source <= SOURCE_FILE) { /* more than the cluster file says */
		value_clear(v);
		r = add(c, CONFIG_STEPS, &s.steps);
	}
	r = r < 0 ? r : add(c, CONFIG_WHAT_IF, &s.what_ifs);
	r = r < 0 ? r : add(c, CONFIG_EXPECT, &s.expects);
	return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}
