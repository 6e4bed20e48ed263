/* See look.h. */
#include "nbox/plan/look.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/units.h"
#include "nbox/json/json-file.h"
#include "nbox/why/print.h"
#include "nbox/why/why.h"

/* --- the band --------------------------------------------------------------------------------- */

int gpu_error_parse(const char *text, struct gpu_error *ret, struct err *err)
{
	const char *dots = strstr(text, "..");
	struct gpu_error e;
	char from[32];

	snprintf(from, sizeof(from), "%.*s", dots ? (int)(dots - text) : 0, text);
	if (!dots || units_ratio(from, &e.slow, NULL) < 0 ||
	    units_ratio(dots + 2, &e.fast, NULL) < 0 || !(e.slow > 0 && e.slow <= e.fast))
		return err_set(err, EINVAL, "'%.64s' is no FROM..TO, such as 0.8..1", text);
	*ret = e;
	return 0;
}

/* A mean step with all times of the model at the end @end of its error; NULL: as it says. NAN: it
 * has no steps. Return: 0; negative errno with the sentence. */
static int play_end(const struct sweep *s, const struct config *c, const struct model_error *error,
		    enum model_end end, double *ret_ms, struct err *err)
{
	const struct model_error_at at = {error, end};
	const struct delay_scale scale = {model_error_scale, &at};
	struct retimed t;
	int r = retime_scaled(s->run, c, error ? &scale : NULL, &t, err);

	if (r < 0)
		return r;
	*ret_ms = t.report.step_ns.n ? t.report.step_ns.mean / 1e6 : NAN;
	retimed_deinit(&t);
	return 0;
}

/* Whose error the band is. */
static void name_errors(const struct model_error *network, bool is_known,
			const struct gpu_error *gpu, char *ret, size_t size)
{
	char gpus[80] = "";

	if (gpu)
		snprintf(gpus, sizeof(gpus), "GPUs are %g to %g times as fast as taken", gpu->slow,
			 gpu->fast);
	if (is_known)
		snprintf(ret, size, "of the network's model%s: %s%s%s", gpu ? "" : " alone",
			 network->source, gpu ? "; of computation: " : "", gpus);
	else
		snprintf(ret, size, "%s%s%s%s", gpu ? "of computation alone: " : "", gpus,
			 gpu ? "; " : "", network->source);
}

/* Return: as above. */
static int add_band(const struct sweep *s, size_t point, json_t *o, struct err *err)
{
	const struct gpu_error *gpu = s->extra->ctx;
	struct model_error error;
	struct config *c;
	double ms[MODEL_ENDS] = {NAN, NAN}, speed;
	char text[600];
	bool is_known;
	int r = point_config(s, point, &c, err);

	if (r < 0)
		return r;
	is_known = model_error_of(c, &error);
	speed = c->topology.gpu_speed > 0 ? c->topology.gpu_speed : 1;
	for (int end = 0; end < MODEL_ENDS && (is_known || gpu) && r == 0; end++) {
		if (gpu)
			c->topology.gpu_speed = speed * (end == MODEL_FAST ? gpu->fast : gpu->slow);
		r = play_end(s, c, is_known ? &error : NULL, (enum model_end)end, &ms[end], err);
	}
	name_errors(&error, is_known, gpu, text, sizeof(text));
	json_object_set_new(o, "error", json_string(text));
	json_object_set_new(o, "beyond",
			    json_boolean(error.max_nodes && c->topology.n_nodes > error.max_nodes));
	if (r == 0 && isfinite(ms[MODEL_FAST]) && isfinite(ms[MODEL_SLOW]))
		json_object_update_new(o, json_pack("{s:f, s:f}", "fast_ms", ms[MODEL_FAST],
						    "slow_ms", ms[MODEL_SLOW]));
	config_free(c);
	return r;
}

/* --- what bounds it --------------------------------------------------------------------------- */

struct of_point {
	const struct sweep *sweep;
	size_t point;
};

static int make_options(void *ctx, struct config **ret, struct err *err)
{
	const struct of_point *of = ctx;

	return point_options(of->sweep, of->point, ret, err);
}

/* Return: as above. What cannot be looked at, such as a run of one op, has no bound. */
static int add_why(const struct sweep *s, size_t point, json_t *o, struct err *err)
{
	CLEANUP(why_deinit) struct why w = {.n_timed = 0};
	struct of_point of = {s, point};
	const char *won_if = "computation takes no time";
	char bound[128], headline[1024];
	bool has_won;
	double ns;
	int r = why_make(s->run, &(struct why_config){.make = make_options, .ctx = &of}, &w, err);

	if (r < 0)
		return r == -ENODATA ? 0 : r;
	ns = fmin(w.network_ns, w.median_ns); /* NAN: nothing is won */
	has_won = w.n_won && !w.won[0].refused[0] && w.won[0].ns < ns;
	if (has_won) {
		ns = w.won[0].ns;
		won_if = w.won[0].text;
	}
	why_largest(&w, !has_won, bound, sizeof(bound));
	json_object_update_new(o, json_pack("{s:s, s:s, s:f, s:f, s:s}", "bound_by", bound, "if",
					    won_if, "won_ms", (w.median_ns - ns) / 1e6, "won",
					    1 - ns / w.median_ns, "headline",
					    why_headline(&w, headline, sizeof(headline))));
	return 0;
}

static int look_write(const struct sweep *s, size_t point, const char *path, struct err *err)
{
	CLEANUP(json_freep) json_t *o = json_object();
	int r = add_band(s, point, o, err);

	r = r == 0 ? add_why(s, point, o, err) : r;
	return r == 0 ? json_file_write(json_incref(o), path, err) : r;
}

const struct sweep_extra look_extra = {.name = "plan.json", .write = look_write};

/* --- read again ------------------------------------------------------------------------------- */

static void take_text(json_t *o, const char *key, char *ret, size_t size)
{
	const char *text = json_string_value(json_object_get(o, key));

	snprintf(ret, size, "%s", text ? text : "");
	plain_text(ret);
}

static int add_note(struct look *l, const char *text)
{
	char plain[512];

	snprintf(plain, sizeof(plain), "%s", text);
	return values_add(&l->notes, plain_text(plain));
}

/* Return: 0; -ENOMEM. */
static int take_notes(json_t *o, struct look *l)
{
	const char *network = json_string_value(json_object_get(o, "network"));
	const char *beyond = network ? strstr(network, "extrapolated") : NULL;
	json_t *warning;
	size_t i;
	int r = beyond ? add_note(l, beyond) : 0;

	json_array_foreach(json_object_get(o, "warnings"), i,
			   warning) if (r == 0 && json_is_string(warning)) r =
		add_note(l, json_string_value(warning));
	return r;
}

int look_read(const struct sweep *s, size_t point, struct look *ret, struct err *err)
{
	CLEANUP(json_freep) json_t *o = NULL;
	CLEANUP(json_freep) json_t *summary = NULL;
	char dir[PATH_MAX], path[PATH_MAX + 32];
	struct look l = {.has_band = false};
	int r;

	snprintf(path, sizeof(path), "%s/%s", point_dir(s, point, dir), look_extra.name);
	r = json_file_read(path, &o, err);
	snprintf(path, sizeof(path), "%s/summary.json", dir);
	r = r == 0 ? json_file_read(path, &summary, err) : r;
	if (r < 0)
		return r;
	l.has_band = json_is_number(json_object_get(o, "slow_ms"));
	l.ms[MODEL_FAST] = json_number_value(json_object_get(o, "fast_ms"));
	l.ms[MODEL_SLOW] = json_number_value(json_object_get(o, "slow_ms"));
	l.is_beyond = json_is_true(json_object_get(o, "beyond"));
	l.won = json_number_value(json_object_get(o, "won"));
	l.won_ms = json_number_value(json_object_get(o, "won_ms"));
	take_text(o, "error", l.error, sizeof(l.error));
	take_text(o, "bound_by", l.bound_by, sizeof(l.bound_by));
	take_text(o, "if", l.won_if, sizeof(l.won_if));
	if (take_notes(summary, &l) < 0) {
		look_deinit(&l);
		return err_set(err, ENOMEM, "out of memory");
	}
	*ret = l;
	return 0;
}

void look_deinit(struct look *l)
{
	values_deinit(&l->notes);
}
