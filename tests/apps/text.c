/* See text.h. */
#include "text.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int append(struct text *text, const char *path)
{
	FILE *file = fopen(path, "rb");
	unsigned char *chars;
	size_t n;

	if (!file) {
		fprintf(stderr, "trainer: cannot read %s: %s\n", path, strerror(errno));
		return -1;
	}
	do {
		chars = realloc(text->chars, text->n + 65536);
		if (!chars)
			break;
		text->chars = chars;
		n = fread(chars + text->n, 1, 65536, file);
		text->n += n;
	} while (n);
	fclose(file);
	if (!chars)
		fprintf(stderr, "trainer: no memory for %s\n", path);
	return chars ? 0 : -1;
}

/* Numbers the characters in the order of their codes. */
static void number(struct text *text)
{
	unsigned char numbers[256] = {0};

	for (size_t i = 0; i < text->n; i++)
		numbers[text->chars[i]] = 1;
	for (int c = 0; c < 256; c++)
		if (numbers[c])
			numbers[c] = (unsigned char)text->n_chars++;
	for (size_t i = 0; i < text->n; i++)
		text->chars[i] = numbers[text->chars[i]];
}

int text_load(struct text *text, char *const *patterns, size_t n_patterns)
{
	struct stat st;
	glob_t found;
	int r = 0;

	*text = (struct text){0};
	for (size_t p = 0; p < n_patterns && r == 0; p++) {
		if (glob(patterns[p], 0, NULL, &found) != 0) {
			fprintf(stderr, "trainer: no file matches %s (see --text)\n", patterns[p]);
			r = -1;
			break;
		}
		for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
			if (found.gl_pathc == 1 ||
			    (lstat(found.gl_pathv[i], &st) == 0 && S_ISREG(st.st_mode)))
				r = append(text, found.gl_pathv[i]);
		globfree(&found);
	}
	if (r == 0 && text->n < 1000) {
		fprintf(stderr, "trainer: %zu characters are too little to learn from\n", text->n);
		r = -1;
	}
	if (r == 0)
		number(text);
	else
		text_free(text);
	return r;
}

void text_free(struct text *text)
{
	free(text->chars);
	*text = (struct text){0};
}
