/* See open-model.h. */
#include "config/open-model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "calibrate/load.h"
#include "calibrate/sample.h"
#include "config/convert.h"
#include "engine/delay-network.h"

/* The first @n what-ifs around the model. */
static int open_first(const struct config *c, size_t n, const char *const *dirs,
		      struct delay_chain **ret, struct err *err)
{
	int r = delay_open(c->model, c->links, c->what_ifs, n, &c->topology, dirs, c->seed, ret,
			   err);

	if (r == 0)
		delay_set_fabric(*ret, c->fabric);
	return r;
}

/* How many what-ifs open around the model; -1: the model does not. */
static long count_good(const struct config *c, const char *const *dirs)
{
	for (size_t n = 0; n <= c->n_what_ifs; n++) {
		struct delay_chain *chain = NULL;
		int r = open_first(c, n, dirs, &chain, NULL);

		delay_free(chain);
		if (r < 0)
			return (long)n - 1;
	}
	return (long)c->n_what_ifs;
}

/* A model that decides which messages an op has needs a fabric that they travel on. */
static int need_fabric(const struct config *c, struct err *err)
{
	static const enum option_id hops[] = {CONFIG_INTRA_LATENCY, CONFIG_INTRA_BANDWIDTH,
					      CONFIG_INTER_LATENCY, CONFIG_INTER_BANDWIDTH};
	char names[512] = "", where[VALUE_WHERE_MAX] = "";
	const char *name, *what;
	size_t used = 0;

	for (size_t i = 0; c->fabric && i < ARRAY_SIZE(hops); i++)
		if (config_is_set(c, hops[i]) &&
		    (config_text(c, CONFIG_PRESET) || config_text(c, CONFIG_FABRIC)))
			return value_refuse(c, hops[i], 0, err,
					    "model %s takes links from fabric %s: change them with "
					    "--cable, such as --cable 'node*.nic*=100Gbps'",
					    c->model, c->fabric->name);
	if (c->fabric)
		return 0;
	for (size_t i = 0; (name = fabric_preset_name(i, &what)) && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 name);
	if (config_is_set(c, CONFIG_MODEL))
		config_where(c, CONFIG_MODEL, 0, where, sizeof(where));
	return err_set(
		err, EINVAL,
		"%s%smodel %s%s needs a fabric, and none is given: --preset NAME (%s), --fabric FILE, --inter NxRATE where GPUs are, or --inter-bandwidth and "
		"--intra-bandwidth; or --model none, a network that takes no time",
		where, where[0] ? ": " : "", c->model, where[0] ? "" : ", the default,", names);
}

/* The place of a what-if among all that were given. */
static size_t item_of(const struct config *c, const char *what_if)
{
	const struct config_value *v = &c->values[CONFIG_WHAT_IF];
	size_t i = 0;

	while (v->items[i].text != what_if)
		i++;
	return i;
}

/* A model that plans no ops knows what a hop costs, not which cables it takes. */
static int refuse_cables(const struct config *c, struct err *err)
{
	if (config_text(c, CONFIG_ECMP))
		return value_refuse(c, CONFIG_ECMP, 0, err,
				    "model %s knows hops, no single cables: take nccl or pinned",
				    c->model);
	if (c->n_link_changes)
		return value_refuse(
			c, CONFIG_WHAT_IF, item_of(c, c->link_changes[0].text), err,
			"'%.64s': model %s knows hops, no single links: take nccl or pinned, or a "
			"what-if such as slow:node=3,link=2",
			c->link_changes[0].text, c->model);
	if (!c->values[CONFIG_CABLE].n_items)
		return 0;
	return value_refuse(
		c, CONFIG_CABLE, 0, err,
		"model %s knows hops, no single cables: take nccl or pinned, or a what-if "
		"such as slow:node=3,link=2",
		c->model);
}

/* A model that plans ops has its own algorithms, channels and chunks: the options pin them. What
 * cannot be pinned counts for the messages that cross the link, where any do. */
static int pin(const struct config *c, struct delay_chain *d, struct err *err)
{
	static const struct {
		enum option_id id;
		const char *key;
	} pins[] = {{CONFIG_CHANNELS, "channels"}, {CONFIG_CHUNK, "chunk"}};
	char where[VALUE_WHERE_MAX];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pins) && r == 0; i++) {
		if (!config_is_set(c, pins[i].id))
			continue;
		if (delay_plan_has(d, pins[i].key))
			r = delay_set_param(d, pins[i].key, config_text(c, pins[i].id), err);
		else if (c->exchange == EXCHANGE_NONE)
			r = err_set(
				err, EINVAL,
				"model %s cuts ops as it decides: variables such as NCCL_BUFFSIZE "
				"change that of nccl, and --model pinned:%s=%s has it as given",
				c->model, pins[i].key, config_text(c, pins[i].id));
		if (r < 0)
			return err_prefix(err, r, "%s",
					  config_where(c, pins[i].id, 0, where, sizeof(where)));
	}
	for (uint32_t k = 0; k < COLL_KINDS; k++)
		if (c->has_algo[k])
			delay_set_algo(d, k, c->algo[k]);
	return 0;
}

/* Without its what-ifs the model does not open: is that --links' fault? */
static bool is_of_links(const struct config *c, const char *const *dirs)
{
	struct delay_chain *chain = NULL;
	int r = !c->links ? -EINVAL
			  : delay_open(c->model, NULL, NULL, 0, &c->topology, dirs, c->seed, &chain,
				       NULL);

	delay_free(chain);
	return r == 0;
}

/* The place of what keeps the model or one of its what-ifs from opening, in front of @err. */
static int put_place(const struct config *c, const char *const *dirs, int r, struct err *err)
{
	enum option_id id = is_of_links(c, dirs) ? CONFIG_LINKS : CONFIG_MODEL;
	long good = count_good(c, dirs);
	char where[VALUE_WHERE_MAX];

	if (good == (long)c->n_what_ifs)
		return r;
	if (good < 0)
		return !config_is_set(c, id)
			       ? r
			       : err_prefix(err, r, "%s",
					    config_where(c, id, 0, where, sizeof(where)));
	return err_prefix(err, r, "%s",
			  config_where(c, CONFIG_WHAT_IF, item_of(c, c->what_ifs[good]), where,
				       sizeof(where)));
}

static int need_steps(const struct config *c, const struct delay_chain *d, struct err *err)
{
	long i = c->steps.n_ops ? -1 : delay_in_steps(d);

	return i < 0 ? 0
		     : value_refuse(c, CONFIG_WHAT_IF, item_of(c, c->what_ifs[i]), err,
				    CONFIG_NEEDS_STEPS, c->what_ifs[i]);
}

static int check_communicators(const struct config *c, const struct delay_chain *d, struct err *err)
{
	struct err why;

	for (size_t i = 0; i < c->n_what_ifs; i++)
		if (data_for_check_axes(delay_communicator(d, i), c->layouts, c->n_layouts, &why) <
		    0)
			return value_refuse(c, CONFIG_WHAT_IF, item_of(c, c->what_ifs[i]), err,
					    "'%.200s': %s", c->what_ifs[i], why.text);
	return 0;
}

/* What was given for this run alone: a file may serve several models. */
static const char *given(const struct config *c, enum option_id id)
{
	enum config_source source = c->values[id].source;

	return source == SOURCE_FLAG || source == SOURCE_VARIABLE ? config_text(c, id) : NULL;
}

static void look_at_hops(const struct config *c, struct delay_chain *d)
{
	delay_network_given(
		d, &(struct delay_network){.intra_latency = given(c, CONFIG_INTRA_LATENCY),
					   .intra_bandwidth = given(c, CONFIG_INTRA_BANDWIDTH),
					   .inter_latency = given(c, CONFIG_INTER_LATENCY),
					   .inter_bandwidth = given(c, CONFIG_INTER_BANDWIDTH)});
}

int open_model(const struct config *c, const char *const *dirs, struct delay_chain **ret,
	       struct err *err)
{
	struct delay_chain *chain = NULL;
	int r = open_first(c, c->n_what_ifs, dirs, &chain, err);

	if (r < 0)
		return put_place(c, dirs, r, err);
	r = delay_has_plan(chain) ? need_fabric(c, err) : refuse_cables(c, err);
	if (r == 0 && delay_has_plan(chain))
		r = pin(c, chain, err);
	else if (r == 0)
		look_at_hops(c, chain);
	if (r == 0)
		r = need_steps(c, chain, err);
	if (r == 0)
		r = check_communicators(c, chain, err);
	if (r < 0)
		delay_free(chain);
	else
		*ret = chain;
	return r;
}

#define FITTED "fitted:file="

static bool is_fitted(const struct config *c)
{
	return strncmp(c->model, FITTED, strlen(FITTED)) == 0;
}

void asked_add(struct asked *a, enum coll_kind kind, uint64_t bytes, uint32_t n_ranks)
{
	double size = sample_size(kind, (double)bytes, n_ranks);

	if (size > 0 && (size < a->least_bytes || !(a->least_bytes > 0)))
		a->least_bytes = size;
	a->most_bytes = fmax(a->most_bytes, size);
}

/* How many times @asked_low to @asked_high lie outside what was measured. */
static size_t add_beyond(char *buf, size_t size, size_t used, const char *what, double low,
			 double high, double asked_low, double asked_high)
{
	double times = fmax(asked_high / high, low / asked_low);

	if (used < size && times > 1 + 1e-9)
		used += (size_t)snprintf(buf + used, size - used,
					 "; extrapolated %.3g times beyond measured %s", times,
					 what);
	return used;
}

/* Return: whether there is a model whose error is known. */
static bool describe_fitted(const struct config *c, int kind, char *buf, size_t size,
			    struct fitted_range *ret)
{
	struct fitted f;
	struct err err;
	int r;

	if (fitted_load(c->model + strlen(FITTED), &f, &err) < 0)
		return false;
	r = fitted_range(&f, kind, ret);
	fitted_deinit(&f);
	if (r == 0)
		snprintf(buf, size,
			 "calibrated: a mean error of %.1f %% on points held out, of the worst "
			 "curve",
			 100 * ret->mape);
	return r == 0;
}

static bool describe_fabric(const struct fabric *f, char *buf, size_t size,
			    struct fitted_range *ret)
{
	if (!f || !f->fit.n_points)
		return false;
	snprintf(buf, size, "calibrated: a median error of %.1f %% on %u points held out",
		 100 * f->fit.error, f->fit.n_points);
	*ret = (struct fitted_range){0, f->fit.min_ranks, f->fit.max_ranks, f->fit.min_bytes,
				     f->fit.max_bytes};
	return true;
}

char *open_model_calibration(const struct config *c, const struct asked *asked, char *buf,
			     size_t size)
{
	struct fitted_range range;
	bool is_known = is_fitted(c) ? describe_fitted(c, asked->kind, buf, size, &range)
				     : describe_fabric(c->fabric, buf, size, &range);
	size_t used;

	if (!is_known) {
		snprintf(buf, size, "not calibrated");
		return buf;
	}
	used = add_beyond(buf, size, strlen(buf), "ranks", range.min_ranks, range.max_ranks,
			  c->world, c->world);
	if (asked->most_bytes > 0)
		add_beyond(buf, size, used, "bytes", range.min_bytes, range.max_bytes,
			   asked->least_bytes, asked->most_bytes);
	return buf;
}

/* What the user has otherwise than the preset or the file: "; NICs given: 4x200Gbps; ...". */
static const char *differences(const struct config *c, char *buf, size_t size)
{
	const struct config_value *cables = &c->values[CONFIG_CABLE];
	const char *nics = config_text(c, CONFIG_INTER);
	int n = 0;

	buf[0] = '\0';
	if (nics)
		n = snprintf(buf, size, "; NICs given: %.40s", nics);
	if (config_text(c, CONFIG_OVERSUBSCRIPTION))
		n += snprintf(buf + n, size - (size_t)n, "; oversubscription given: %.16s",
			      config_text(c, CONFIG_OVERSUBSCRIPTION));
	if (cables->n_items)
		snprintf(buf + n, size - (size_t)n, "; changed: %.60s%s", cables->items[0].text,
			 cables->n_items > 1 ? " and more" : "");
	return buf;
}

/* Where the fabric is from. */
static const char *origin(const struct config *c)
{
	const char *preset = config_text(c, CONFIG_PRESET), *file = config_text(c, CONFIG_FABRIC);
	const char *name = preset ? preset : file;

	if (name ? strcasecmp(name, "machine") == 0 : config_text(c, CONFIG_INTER) != NULL)
		return "read";
	return preset ? "assumed" : "given";
}

char *open_model_network(const struct config *c, const struct delay_chain *chain,
			 const struct asked *asked, char *buf, size_t size)
{
	const struct delay_network cluster = {
		.intra_latency = config_text(c, CONFIG_INTRA_LATENCY),
		.intra_bandwidth = config_text(c, CONFIG_INTRA_BANDWIDTH),
		.inter_latency = config_text(c, CONFIG_INTER_LATENCY),
		.inter_bandwidth = config_text(c, CONFIG_INTER_BANDWIDTH),
	};

	char calibration[256], other[160];

	buf[0] = '\0';
	if (delay_has_plan(chain))
		snprintf(buf, size, "fabric %s (%s: %s%s); %s", c->fabric->name, origin(c),
			 c->fabric->source, differences(c, other, sizeof(other)),
			 open_model_calibration(c, asked, calibration, sizeof(calibration)));
	else if (is_fitted(c))
		snprintf(buf, size, "measured; %s",
			 open_model_calibration(c, asked, calibration, sizeof(calibration)));
	else if (strcmp(c->model, "none") != 0)
		delay_network(chain, &cluster, buf, size);
	return buf;
}
