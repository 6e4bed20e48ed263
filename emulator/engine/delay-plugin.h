/* The shared libraries with delay models: they are looked up in folders, loaded, and checked. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "nbox-delaymodel.h"

/* An open plug-in. */
struct delay_plugin {
	void *handle;                 /* owned, dlclose() */
	struct nbox_delaymodel table; /* a copy; what the plug-in does not know is 0 */
};

/* Return: 0, -ENOENT, -ENOEXEC, -EINVAL with the sentence. */
int delay_plugin_find(const char *name, const char *const *dirs, struct delay_plugin *ret,
		      struct err *err);
void delay_plugin_close(struct delay_plugin *p);

/* For `nbox models`: calls @each for every plug-in found, sorted by name. */
int delay_list(const char *const *dirs,
	       void (*each)(void *ctx, const struct nbox_delaymodel *m, const char *path),
	       void *ctx, struct err *err);
