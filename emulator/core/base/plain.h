/* Text that is safe to print. Text of a file or another process may hold bytes that a terminal
 * obeys (escape sequences, line feeds that forge a line, marks that turn the direction of
 * writing), or bytes that are no text. */
#pragma once

/* Makes valid UTF-8 without control characters of @text, in place: each byte of what is neither
 * becomes '?'. A tab and a line feed are control characters, too. Return: @text. */
char *plain_text(char *text);
