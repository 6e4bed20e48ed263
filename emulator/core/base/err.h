/* A sentence that travels with an error code. The function that first knows
 * what went wrong writes the sentence (what, where, why, what to do); callers
 * may put a place in front of it; only the command, nboxd's log, the
 * shim's last line or a frame to a refused peer shows it.
 *
 * Codes: 0 is success; a negative errno is forwarded, unless the function
 * says that its caller may handle it; positive values belong to the module that documents them and
 * must be handled by its caller. */
#pragma once

#define ERR_TEXT_MAX 512

struct err {
	char text[ERR_TEXT_MAX]; /* always terminated; "" when nothing is wrong */
};

/**
 * err_set - writes the sentence of an error
 * @err: where to; NULL is allowed (the sentence is dropped)
 * @code: a positive errno value
 *
 * Return: -@code, so that `return err_set(err, EINVAL, "...")` reads well.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/**
 * err_prefix - puts "<prefix>: " in front of the sentence of @err
 *
 * Return: @code, unchanged.
 */
int err_prefix(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
