/* See notes.h. */
#include "nbox/sweep/notes.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *behind_number(const char *at)
{
	while (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1])))
		at++;
	return at;
}

static bool is_alike(const char *a, const char *b)
{
	for (;; a++, b++) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			a = behind_number(a);
			b = behind_number(b);
		}
		if (*a != *b || !*a)
			return *a == *b;
	}
}

int notes_add(struct notes *n, const char *text, uint32_t *marks)
{
	size_t i = 0;

	while (i < n->n && !is_alike(n->list[i].text, text))
		i++;
	if (i == NOTES_MAX) {
		n->n_dropped++;
		return 0;
	}
	if (i == n->n) {
		n->list[i] = (struct note){.text = strdup(text)};
		if (!n->list[i].text)
			return -ENOMEM;
		n->n++;
	}
	n->list[i].n += !(*marks & 1u << i);
	*marks |= 1u << i;
	return 0;
}

char *notes_text(uint32_t marks, char *buf)
{
	size_t n = 0;

	for (int i = 0; i < NOTES_MAX; i++)
		if (marks & 1u << i)
			buf[n++] = (char)('a' + i);
	buf[n] = '\0';
	return buf;
}

void notes_deinit(struct notes *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->list[i].text);
}
