/* The models of a chain and what nbox lends to them. */
#pragma once

#include <stdbool.h>

#include "engine/delay-job.h"
#include "engine/delay-plugin.h"
#include "scenario/target.h"
#include "scenario/when.h"
#include "schedule/coll.h"
#include "topology/topology.h"

struct delay_scale;
struct fabric;

#define DELAY_MAX_PARAMS 32
#define DELAY_TEXT_MAX 4096

enum delay_role { DELAY_MODEL, DELAY_LINKS, DELAY_WHAT_IF };
#define DELAY_SCHEDULER UINT32_MAX

/* One model of the chain, with its parameters. Its address must not change, since host and next
 * point to it. */
struct delay_instance {
	struct delay_chain *chain;
	uint32_t number; /* in the chain: 0 the base model; or DELAY_SCHEDULER */
	struct delay_plugin plugin;
	struct nbox_host host;
	struct nbox_next next;
	void *model;    /* the plug-in's; plugin.table.destroy() */
	bool is_made;   /* create() went well */
	uint32_t flags; /* traits() or the table's */
	char *text;     /* owned; keys and values point into it */
	struct nbox_kv kv[DELAY_MAX_PARAMS];
	size_t n_kv;
	uint32_t *ranks; /* owned; that rank= and node= name */
	size_t n_ranks;
	/* of a what-if, whatever it does; delay-scope.c */
	struct when when;
	struct target target;
	bool is_for_ranks; /* @ranks are none of the model's own */
	bool is_off;       /* it does not hold now: delay_set_moment() */
	uint64_t n_used;   /* answers that it had a part in */
};

#define DELAY_MAX_ASKED 64

struct delay_chain {
	uint64_t seed;
	struct topology world;
	struct delay_job job;               /* all 0: none has joined */
	const char *asked[DELAY_MAX_ASKED]; /* variables that models asked for */
	size_t n_asked;
	uint32_t algos[COLL_KINDS];        /* that the user asked for; or NBOX_ALGO_ANY */
	const char *decided_by, *taken_by; /* source of the last plan by rule, of NCCL's own; or
					    * NULL */
	const char *told_by;              /* of the last plan of NCCL's own that has one; or NULL */
	const struct fabric *fabric;      /* borrowed, or NULL */
	const struct delay_scale *scale;  /* the same */
	struct delay_instance *scheduler; /* owned, or NULL */
	struct delay_instance *items;     /* owned; [0] the base model, or that of the scheduler's
					   * links; then decorators */
	size_t n;
	char *description;  /* owned */
	struct moment now;  /* delay_set_moment() */
	double window_ns;   /* delay_set_window() */
	struct err warning; /* what host->warn() wrote last */
	struct err err;     /* what host->error() or a check wrote last */
};

/* Fills in->host: the parsers, chance and sentences that the model may use. */
void delay_host_init(struct delay_instance *in);
/* Splits @spec ("name:key=value,...") into in->text and in->kv; *ret_name points
 * into in->text. */
int delay_spec_parse(struct delay_instance *in, const char *spec, const char **ret_name,
		     struct err *err);
/* The value of @name in what the job told; NULL: it has none. */
const char *delay_told(const struct delay_job *job, const char *name);
/* NULL: the model has no parameter @key. */
const struct nbox_param *delay_param(const struct delay_instance *in, const char *key);
/* Of a what-if: takes the keys that all what-ifs have out of in->kv, but for those that the model
 * has as its own. Return: 0; -EINVAL with the sentence. */
int delay_scope_take(struct delay_instance *in, struct err *err);
/* When it is made: does what it works on have what its keys name? Return: as above. */
int delay_scope_check(const struct delay_instance *in, bool on_segments, bool on_ops,
		      struct err *err);
bool delay_scope_has_op(const struct delay_instance *in, const struct nbox_op *op);
bool delay_scope_has_rank(const struct delay_instance *in, uint32_t world_rank);
/* Is every key known and given once, and every required key there? Return: 0; negative errno with
 * the sentence. */
int delay_params_check(const struct delay_instance *in, struct err *err);
