/* See json-text.h. */
#include "cli/json-text.h"

#include <stddef.h>

json_t *json_text(const char *text)
{
	json_t *j = json_string(text);
	char ascii[1024];
	size_t n;

	if (j)
		return j;
	for (n = 0; text[n] && n < sizeof(ascii) - 1; n++)
		ascii[n] = (char)((unsigned char)text[n] < 0x80 ? text[n] : '?');
	ascii[n] = '\0';
	return json_string(ascii);
}
