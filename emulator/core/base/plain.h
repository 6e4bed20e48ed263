/* Text that is safe to print. Text of a file or another process may hold bytes that a terminal
 * obeys (escape sequences, line feeds that forge a line, marks that turn the direction of
 * writing), or bytes that are no text. */
#pragma once

/* Makes @text valid UTF-8 without control characters (tab and line feed are such), in place: each
 * bad byte becomes '?'. Return: @text. */
char *plain_text(char *text);
