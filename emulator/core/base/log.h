/* The log of nboxd, nbox and, when asked for, the shim. A line reads like
 * NCCL's:  host:pid:tid [rank] nbox INFO message
 * Quiet by default: WARN and above. NBOX_DEBUG=WARN|INFO|DEBUG|TRACE raises it,
 * NBOX_DEBUG_FILE=name.%h.%p sends it to a file (%h host, %p pid). Thread-safe,
 * never changes errno, never exits. */
#pragma once

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* Before the process opens anything. Reads NBOX_DEBUG and NBOX_DEBUG_FILE. An unknown level is
 * reported once on stderr with the list of levels. Descriptors 0 to 2 that are closed become
 * /dev/null. */
void log_open(void);
void log_set_level(enum log_level level);
void log_set_rank(int rank); /* -1: no rank is shown */
int log_enabled(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) (log_enabled(LOG_INFO) ? log_line(LOG_INFO, __VA_ARGS__) : (void)0)
#define log_debug(...) (log_enabled(LOG_DEBUG) ? log_line(LOG_DEBUG, __VA_ARGS__) : (void)0)
#define log_trace(...) (log_enabled(LOG_TRACE) ? log_line(LOG_TRACE, __VA_ARGS__) : (void)0)
