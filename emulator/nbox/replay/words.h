/* What the options of nbox replay and diagnose say. */
#pragma once

#include "base/err.h"
#include "nbox/replay/play.h"

/* "comm=0.5,compute=2,op:NAME=+1ms,rank:3=1.5": each a factor, or with a sign a time. *ret grows;
 * names are borrowed from @text, which is cut. Return: 0; -EINVAL with the
 * sentence; -ENOMEM. */
int words_scale(char *text, struct play_change **ret, uint32_t *n, struct err *err);
/* Does each change find what it is of in @j? Return: 0; -EINVAL with the sentence. */
int words_check(const struct play_change *list, uint32_t n, const struct job *j, struct err *err);
/* "ring", "tree", "ps:servers=2". *ret_servers 0: no parameter server. Return: as above. */
int words_algo(const char *text, int *ret_algo, uint32_t *ret_servers, struct err *err);
