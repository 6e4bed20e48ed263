/* Text that is safe to print. Text of a file or another process may hold bytes that a terminal
 * obeys (escape sequences, line feeds that forge a line, marks that turn the direction of
 * writing), or bytes that are no text. */
#pragma once

#include <stdio.h>

/* Makes @text valid UTF-8 without control characters (tab and line feed are such), in place: each
 * bad byte becomes '?'. Return: @text. */
char *plain_text(char *text);
/* As the text of an XML or HTML element, or of an attribute in double quotes. */
void plain_xml(const char *text, FILE *to);
/* As one word of a shell, in single quotes. */
void plain_shell(const char *text, FILE *to);
