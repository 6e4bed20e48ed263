/* The terminal, taken for a live view: another screen, no cursor, keys at once. It is given back on
 * every way out that can be caught: the end, a signal that ends the process, Ctrl-Z, a crash. One
 * at a time. */
#pragma once

#include <signal.h>
#include <stdio.h>

enum screen_event { SCREEN_TIME, SCREEN_QUIT, SCREEN_AGAIN }; /* q or a signal; size has changed */

/* Standard output is a terminal; standard input may be something else. Return: 0; negative errno.
 */
int screen_open(void);
void screen_close(void);
/* Until @ms have passed or something has happened. */
enum screen_event screen_wait(int ms);
/* Not 0: the signal that ends the process. */
extern volatile sig_atomic_t screen_signal;
void screen_size(unsigned *ret_columns, unsigned *ret_rows);
/* Replaces what is shown by @text: lines of no more than the screen's width. Return: 0; -EIO. */
int screen_show(const char *text);
