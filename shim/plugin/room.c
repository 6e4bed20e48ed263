/* See room.h, and plugin_start() of plugin.h. */
#include "shim/plugin/room.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/err.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/transfer.h"
#include "shim/progress/traffic.h"

static _Atomic bool is_open;
static _Atomic(plugin_log_fn) logger;

void plugin_start(void)
{
	traffic_set_events(&transfer_events);
	atomic_store_explicit(&is_open, true, memory_order_release);
}

bool room_is_open(void)
{
	/* acquire: pairs with plugin_start() */
	return atomic_load_explicit(&is_open, memory_order_acquire);
}

void room_set_log(plugin_log_fn log)
{
	atomic_store_explicit(&logger, log, memory_order_relaxed);
}

int room_refuse(const char *fmt, ...)
{
	plugin_log_fn log = atomic_load_explicit(&logger, memory_order_relaxed);
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (log)
		log(PLUGIN_LEVEL_WARN, PLUGIN_NET, __FILE__, __LINE__, "NET/" PLUGIN_NAME ": %s",
		    text);
	return PLUGIN_INVALID_USAGE;
}
