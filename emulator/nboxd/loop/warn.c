/* See warn.h. */
#include "nboxd/loop/warn.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define STRANGERS_LOGGED 8
#define STRANGERS_NS (10 * NS_PER_S)

static uint64_t n_warnings;
static uint32_t n_strangers; /* since strangers_ns */
static uint64_t strangers_ns;

void warn_run(const char *fmt, ...)
{
	char text[1536];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n_warnings++;
	log_warn("%s", text);
}

void warn_stranger(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	n_warnings++;
	if (n_strangers++ == 0)
		strangers_ns = clock_now_ns();
	if (n_strangers > STRANGERS_LOGGED)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
}

void warn_tick(uint64_t now_ns)
{
	if (!n_strangers || now_ns < strangers_ns + STRANGERS_NS)
		return;
	if (n_strangers > STRANGERS_LOGGED)
		log_warn("%u more connections were refused or broke before they showed the token",
			 n_strangers - STRANGERS_LOGGED);
	n_strangers = 0;
}

uint64_t warn_count(void)
{
	return n_warnings;
}
