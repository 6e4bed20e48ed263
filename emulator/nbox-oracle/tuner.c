/* See tuner.h. */
#include "nbox-oracle/tuner.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/cleanup.h"

_Static_assert(PLUGIN_N_ALGORITHMS <= ORACLE_ALGOS_MAX && PLUGIN_N_PROTOCOLS <= ORACLE_PROTOS_MAX,
	       "a line has room for a table");

int tuner_open(struct tuner *ret, const char *file, struct err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	struct tuner t = {.n_seen = 0};
	const struct {
		const char *name;
		void **to;
	} wanted[] = {
		{"nbox_oracle_set_devices", (void **)&t.set_devices},
		{"nbox_oracle_tables", (void **)&t.tables},
		{"nbox_oracle_table", (void **)&t.table},
		{"nbox_oracle_stop_ops", (void **)&t.stop_ops},
		{"nbox_oracle_counts", (void **)&t.counts},
	};

	if (!library)
		return err_set(err, ENOENT, "%s", dlerror());
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		*wanted[i].to = dlsym(library, wanted[i].name);
		if (!*wanted[i].to)
			return err_set(err, ENOSYS, "%s has no %s", file, wanted[i].name);
	}
	t.stop_ops(true);
	*ret = t;
	return 0;
}

void tuner_forget(struct tuner *t)
{
	t->n_seen = t->tables();
}

bool tuner_take(struct tuner *t, struct oracle_costs *ret)
{
	struct nbox_oracle_table table;

	if (t->table(t->n_seen, &table) < 0)
		return false;
	ret->bytes = table.bytes;
	ret->n_algos = table.has_costs ? (uint32_t)table.n_algorithms : 0;
	ret->n_protos = table.has_costs ? PLUGIN_N_PROTOCOLS : 0;
	for (uint32_t a = 0; a < ret->n_algos; a++)
		for (uint32_t p = 0; p < ret->n_protos; p++)
			ret->us[a * ret->n_protos + p] = table.us[a][p];
	t->n_seen = t->tables();
	return true;
}
