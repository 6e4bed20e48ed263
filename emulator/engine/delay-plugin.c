/* See delay-plugin.h. Nothing of a plug-in is called before its ABI number, its size and its
 * required callbacks have been checked. */
#include "engine/delay-plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/suggest.h"

#define SYMBOL "nbox_delaymodel"
#define SUFFIX ".so"
#define PATH_BYTES 4096
#define MAX_FOUND 256
/* What-ifs without a plug-in: nbox itself carries them out (config/failure.h, link-change.h,
 * resharding.h). */
static const char *const own_names[] = {"fail", "desync", "link", "load", "xmesh"};
#define OWN_NAMES "fail desync link load xmesh"

/* The table as this ABI began: none may be shorter. */
#define TABLE_MIN \
	(offsetof(struct nbox_delaymodel, traits) + sizeof(((struct nbox_delaymodel *)0)->traits))

void delay_plugin_close(struct delay_plugin *p)
{
	if (p->handle)
		dlclose(p->handle);
	memset(p, 0, sizeof(*p));
}

/* How large the linker says the symbol is; 0 when it does not say. */
static size_t symbol_bytes(const void *symbol)
{
	const ElfW(Sym) *entry = NULL;
	Dl_info info;
	void *extra = NULL;

	if (!dladdr1(symbol, &info, &extra, RTLD_DL_SYMENT) || !extra)
		return 0;
	entry = extra;
	return info.dli_saddr == symbol ? (size_t)entry->st_size : 0;
}

/* Copies what both sides know of the table. */
static int copy_table(const struct nbox_delaymodel *from, const char *path,
		      struct nbox_delaymodel *ret, struct err *err)
{
	size_t there = symbol_bytes(from), n;

	if (there && there < offsetof(struct nbox_delaymodel, name))
		return err_set(err, ENOEXEC, "%s: its " SYMBOL " is no table of a delay model",
			       path);
	if (from->abi != NBOX_DELAYMODEL_ABI)
		return err_set(
			err, ENOEXEC,
			"%s was built for delay-model ABI %u, nbox has %d: build it again with "
			"this nbox-delaymodel.h",
			path, from->abi, NBOX_DELAYMODEL_ABI);
	if (from->struct_size < TABLE_MIN || (there && from->struct_size > there))
		return err_set(
			err, ENOEXEC,
			"%s says that its table has %u bytes, it has %zu and ABI %d at least "
			"%zu: begin it with NBOX_DELAYMODEL_HEAD",
			path, from->struct_size, there, NBOX_DELAYMODEL_ABI, TABLE_MIN);
	n = from->struct_size < sizeof(*ret) ? from->struct_size : sizeof(*ret);
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, from, n);
	return 0;
}

/* Required callbacks, by name. */
static int check_table(const struct nbox_delaymodel *m, const char *path, struct err *err)
{
	const char *missing = NULL;

	if (!m->name || !m->name[0])
		missing = "name";
	else if (!m->create)
		missing = "create()";
	else if (!m->destroy)
		missing = "destroy()";
	else if (m->flags & NBOX_DECORATOR && !m->message && !m->extra && !m->segment)
		missing = "message(), extra() or segment(), one of which a decorator needs";
	else if (!(m->flags & NBOX_DECORATOR) && !m->op && !m->message && !m->plan)
		missing = "op(), message() or plan(), one of which a model needs";
	else if (m->plan && (m->op || m->message || m->flags & NBOX_DECORATOR))
		return err_set(err, ENOEXEC,
			       "%s: the delay model %s has plan() and something else besides: a "
			       "scheduler says which messages an op has, and nothing more",
			       path, m->name);
	if (missing)
		return err_set(err, ENOEXEC, "%s: the delay model%s%s has no %s", path,
			       m->name && m->name[0] ? " " : "", m->name ? m->name : "", missing);
	return 0;
}

static int plugin_open(const char *path, struct delay_plugin *ret, struct err *err)
{
	const struct nbox_delaymodel *table;
	struct delay_plugin p = {0};
	int r;

	/* @path has a slash: dlopen() would look for a bare name in the system's folders */
	p.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!p.handle)
		return err_set(err, ENOEXEC, "cannot load the delay model %s: %s", path, dlerror());
	table = dlsym(p.handle, SYMBOL);
	if (!table) {
		r = err_set(err, ENOEXEC, "%s exports no " SYMBOL ": it is no delay model", path);
	} else {
		r = copy_table(table, path, &p.table, err);
		if (r == 0)
			r = check_table(&p.table, path, err);
	}
	if (r < 0) {
		delay_plugin_close(&p);
		return r;
	}
	*ret = p;
	return 0;
}

/* From a folder: the file must be called after the model. */
static int plugin_open_named(const char *path, const char *name, struct delay_plugin *ret,
			     struct err *err)
{
	struct delay_plugin p = {0};
	int r = plugin_open(path, &p, err);

	if (r < 0)
		return r;
	if (strcmp(p.table.name, name) != 0) {
		r = err_set(err, ENOEXEC, "%s holds a delay model that calls itself '%.64s'", path,
			    p.table.name);
		delay_plugin_close(&p);
		return r;
	}
	*ret = p;
	return 0;
}

/* --- folders --------------------------------------------------------------- */

struct found {
	char *name, *path; /* owned */
};

struct found_list {
	struct found items[MAX_FOUND];
	size_t n;
};

static void found_free(struct found_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		free(list->items[i].name);
		free(list->items[i].path);
	}
	list->n = 0;
}

static bool is_found(const struct found_list *list, const char *name)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcmp(list->items[i].name, name) == 0)
			return true;
	return false;
}

/* A model in an earlier folder hides one of the same name in a later folder. Return: 0; -ENOMEM. */
static int scan_dir(const char *dir, struct found_list *list)
{
	struct dirent *e;
	DIR *d = opendir(dir);
	int r = 0;

	if (!d)
		return 0; /* a folder that is not there has no models */
	while (r == 0 && list->n < MAX_FOUND && (e = readdir(d))) {
		size_t len = strlen(e->d_name);
		struct found f = {0};

		if (len <= strlen(SUFFIX) || strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		f.name = strndup(e->d_name, len - strlen(SUFFIX));
		if (f.name && is_found(list, f.name)) {
			free(f.name);
			continue;
		}
		if (!f.name || asprintf(&f.path, "%s%s/%s", strchr(dir, '/') ? "" : "./", dir,
					e->d_name) < 0) {
			free(f.name);
			r = -ENOMEM;
			break;
		}
		list->items[list->n++] = f;
	}
	closedir(d);
	return r;
}

static int compare_found(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

/* A folder that the user named must be there; nbox's own may be missing. */
static int check_named(const char *dir, struct err *err)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return err_set(err, errno, "NBOX_MODEL_PATH: %.200s: %s", dir, strerror(errno));
	return S_ISDIR(st.st_mode)
		       ? 0
		       : err_set(err, ENOTDIR, "NBOX_MODEL_PATH: %.200s is no folder", dir);
}

/* Lists the models of NBOX_MODEL_PATH, then of @dirs, sorted by name. */
static int scan(const char *const *dirs, struct found_list *ret, struct err *err)
{
	const char *env = getenv("NBOX_MODEL_PATH");
	int r = 0;

	ret->n = 0;
	while (env && *env && r == 0) {
		char dir[PATH_BYTES];
		size_t len = strcspn(env, ":");

		if (len > 0 && len < sizeof(dir)) {
			memcpy(dir, env, len);
			dir[len] = '\0';
			r = check_named(dir, err);
			if (r < 0) {
				found_free(ret);
				return r;
			}
			r = scan_dir(dir, ret);
		}
		env += len + (env[len] == ':');
	}
	for (; dirs && *dirs && r == 0; dirs++)
		r = scan_dir(*dirs, ret);
	if (r < 0) {
		found_free(ret);
		return err_set(err, ENOMEM, "out of memory for the list of delay models");
	}
	qsort(ret->items, ret->n, sizeof(ret->items[0]), compare_found);
	return 0;
}

/* The names of the what-ifs (@is_decorator) or of the models; what cannot be loaded is left out. */
static void list_names(const struct found_list *list, bool is_decorator, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < list->n && used < size; i++) {
		struct delay_plugin p = {0};

		if (plugin_open_named(list->items[i].path, list->items[i].name, &p, NULL) < 0)
			continue;
		if (is_decorator == !!(p.table.flags & NBOX_DECORATOR))
			used += (size_t)snprintf(buf + used, size - used, " %s",
						 list->items[i].name);
		delay_plugin_close(&p);
	}
}

static int not_found(const char *name, const struct found_list *list, struct err *err)
{
	const char *names[MAX_FOUND + ARRAY_SIZE(own_names)], *near;
	char models[160], what_ifs[160];
	size_t i;

	if (list->n == 0)
		return err_set(err, ENOENT,
			       "unknown delay model '%.64s': there is none at all in the model "
			       "folders; name them in NBOX_MODEL_PATH",
			       name);
	for (i = 0; i < list->n; i++)
		names[i] = list->items[i].name;
	for (size_t k = 0; k < ARRAY_SIZE(own_names); k++) {
		if (strcmp(name, own_names[k]) == 0)
			return err_set(err, ENOENT, "'%s' is a what-if, no delay model", name);
		names[i++] = own_names[k];
	}
	near = suggest(name, names, i);
	list_names(list, false, models, sizeof(models));
	list_names(list, true, what_ifs, sizeof(what_ifs));
	return err_set(
		err, ENOENT,
		"unknown delay model or what-if '%.64s';%s%s%s models:%s; what-ifs:%s " OWN_NAMES,
		name, near ? " did you mean '" : "", near ? near : "", near ? "'?" : "", models,
		what_ifs);
}

int delay_plugin_find(const char *name, const char *const *dirs, struct delay_plugin *ret,
		      struct err *err)
{
	struct found_list list;
	size_t i;
	int r;

	if (strchr(name, '/'))
		return plugin_open(name, ret, err);
	r = scan(dirs, &list, err);
	if (r < 0)
		return r;
	for (i = 0; i < list.n && strcmp(list.items[i].name, name) != 0; i++)
		;
	r = i == list.n ? not_found(name, &list, err)
			: plugin_open_named(list.items[i].path, name, ret, err);
	found_free(&list);
	return r;
}

int delay_list(const char *const *dirs,
	       void (*each)(void *ctx, const struct nbox_delaymodel *m, const char *path),
	       void *ctx, struct err *err)
{
	struct found_list list;
	struct err first = {""};
	size_t i;
	int r, bad = 0;

	r = scan(dirs, &list, err);
	if (r < 0)
		return r;
	for (i = 0; i < list.n; i++) {
		struct delay_plugin p = {0};

		r = plugin_open_named(list.items[i].path, list.items[i].name, &p,
				      bad ? NULL : &first);
		if (r < 0) {
			bad = bad ? bad : r;
			continue;
		}
		each(ctx, &p.table, list.items[i].path);
		delay_plugin_close(&p);
	}
	found_free(&list);
	return bad ? err_set(err, -bad, "%s", first.text) : 0;
}
