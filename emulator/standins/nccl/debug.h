/* NCCL_DEBUG, NCCL_DEBUG_FILE and the last error. */
#pragma once

#include <stdbool.h>

#include <nccl.h>

enum debug_level { DEBUG_NONE, DEBUG_VERSION, DEBUG_WARN, DEBUG_INFO, DEBUG_TRACE };

void debug_reset(void); /* reads the variables again */
void debug_after_fork(void);
bool debug_on(enum debug_level level);
void debug_line(enum debug_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define debug_info(...) (debug_on(DEBUG_INFO) ? debug_line(DEBUG_INFO, __VA_ARGS__) : (void)0)

/* Remembers the sentence for ncclGetLastError, says it when NCCL_DEBUG=WARN.
 * Return: @code. */
ncclResult_t fail(ncclResult_t code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *last_error(void);
ncclResult_t result_of_errno(int code); /* negative errno */
int errno_of_result(ncclResult_t code); /* positive errno */
