/* nbox report --format html, svg, png, md: one run, or several beside each other. */
#pragma once

#include <stddef.h>

#include "base/err.h"

enum page_format { PAGE_TEXT, PAGE_HTML, PAGE_SVG, PAGE_PNG, PAGE_MD };

/* @words: of one run or more, as run_load() takes them, or of one plan's folder. @path: "-":
 * standard output. Return: 0; negative errno with the sentence. */
int page_write(const char *const *words, size_t n, enum page_format format, const char *path,
	       struct err *err);
