/* See explain.h. */
#include "nbox/ask/explain.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/units.h"
#include "schedule/coll.h"

static const char *how_text(enum solve_how how)
{
	static const char *const texts[] = {"the model's own answer for the op", /* SOLVE_... */
					    "symmetry, equal to a simulation of each message",
					    "a simulation of each message"};

	return texts[how];
}

struct subject {
	struct ask *ask;
	const struct config *config;
	enum coll_kind kind;
	uint64_t size;
	struct answer answer;
};

static void print_text(const struct subject *s, FILE *to)
{
	const struct answer *a = &s->answer;
	const struct config *c = s->config;
	char text[1024], size[32], t[32], b[32];

	fprintf(to, "op          %s of %s, %u ranks (%u nodes x %u)\n", coll_kind_name(s->kind),
		units_print_bytes(s->size, size, sizeof(size)), c->world, c->topology.n_nodes,
		c->topology.gpus_per_node);
	fprintf(to, "model       %s\n", config_model(c, text, sizeof(text)));
	fprintf(to, "network     %s\n", ask_network(s->ask, text, sizeof(text)));
	fprintf(to, "bound       %s%s%s\n", units_print_time(a->bound_ns, b, sizeof(b)),
		a->bound_at[0] ? " at " : "", a->bound_at);
	fprintf(to, "time        %s, by %s", units_print_time(a->model_ns, t, sizeof(t)),
		how_text(a->how));
	if (a->bound_ns > 0)
		fprintf(to, "; %.2f x the bound", a->model_ns / a->bound_ns);
	fputc('\n', to);
	if (a->ns != a->model_ns)
		fprintf(to, "what-ifs    %s in all\n", units_print_time(a->ns, t, sizeof(t)));
}

static int print_json(const struct subject *s, FILE *to)
{
	const struct answer *a = &s->answer;
	const struct config *c = s->config;
	char model[1024], network[1024];
	json_t *o =
		json_pack("{s:s, s:I, s:i, s:i, s:i, s:s, s:s, s:f, s:f, s:f, s:s, s:s}", "op",
			  coll_kind_name(s->kind), "bytes", (json_int_t)s->size, "ranks",
			  (int)c->world, "nodes", (int)c->topology.n_nodes, "gpus_per_node",
			  (int)c->topology.gpus_per_node, "model",
			  config_model(c, model, sizeof(model)), "network",
			  ask_network(s->ask, network, sizeof(network)), "modelled_us",
			  a->model_ns / 1e3, "injected_us", (a->ns - a->model_ns) / 1e3, "bound_us",
			  a->bound_ns / 1e3, "bound_at", a->bound_at, "how", how_text(a->how));
	int failed = !o || json_dumpf(o, to, JSON_INDENT(1)) < 0;

	fputc('\n', to);
	json_decref(o);
	return failed ? -ENOMEM : 0;
}

int explain_print(struct ask *a, enum coll_kind kind, uint64_t size, uint32_t dtype, bool is_json,
		  FILE *to, struct err *err)
{
	struct subject s = {.ask = a, .config = ask_config(a), .kind = kind};
	uint32_t element = (uint32_t)coll_dtype_bytes(dtype);
	uint64_t bytes = ask_bytes(kind, size, element, s.config->world);
	int r;

	if (!bytes)
		return err_set(err, EINVAL,
			       "the size is that of all ranks' parts, and has no element for each "
			       "of the %u ranks; take a larger one",
			       s.config->world);
	s.size = ask_size(kind, bytes, s.config->world);
	r = ask_op(a, kind, bytes, element, 0, &s.answer, err);
	if (r < 0)
		return r;
	if (is_json)
		return print_json(&s, to);
	print_text(&s, to);
	return 0;
}
