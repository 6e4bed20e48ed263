/* See declared.h. */
#include "replay/declared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "replay/law.h"

static int refuse_word(const char *what, const char *word, const char *const *names, size_t n,
		       struct err *err)
{
	const char *near = suggest_long(word, names, n);

	return err_set(err, EINVAL, "'%.32s' is no %s%s%s%s", word, what,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int declare(const char *kind_name, const char *law_text, struct declared_counts *ret,
		   struct err *err)
{
	static const char *const kinds[] = {"allreduce", "allgather", "reducescatter",
					    "broadcast", "reduce",    "alltoall",
					    "gather",    "scatter",   "sendrecv"};
	int kind = coll_kind_parse(kind_name), law = LAW_KEEP;
	const char *names[] = {law_name(LAW_KEEP), law_name(LAW_TOTAL), law_name(LAW_GROW)};

	if (kind < 0)
		return refuse_word("kind of op", kind_name, kinds, ARRAY_SIZE(kinds), err);
	while (law <= LAW_GROW && strcmp(law_text, law_name((enum law_kind)law)) != 0)
		law++;
	if (law > LAW_GROW)
		return refuse_word("law (keep, total, grow)", law_text, names, ARRAY_SIZE(names),
				   err);
	if (ret->law[kind] != LAW_NONE && ret->law[kind] != law)
		return err_set(err, EINVAL, "%s is declared twice", kind_name);
	ret->law[kind] = (uint8_t)law;
	return 0;
}

int declared_parse(const char *text, struct declared_counts *ret, struct err *err)
{
	CLEANUP(freep) char *words = strdup(text);
	char *at = words, *word;
	int r = words ? 0 : err_set(err, ENOMEM, "out of memory");

	while (r == 0 && (word = strsep(&at, ","))) {
		char *law = strchr(word, '=');

		if (!law)
			return err_set(err, EINVAL,
				       "'%.32s' is no KIND=LAW, such as alltoall=total", word);
		*law++ = '\0';
		r = declare(word, law, ret, err);
	}
	return r;
}
