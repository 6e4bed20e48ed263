/* What nbox oracle prints. */
#pragma once

#include <stdio.h>

#include "nbox/oracle/host.h"

void oracle_page_head(const struct oracle_nccl *n, FILE *to);
/* A world, as soon as it is asked: what was made, what that took, what NCCL takes of which size on.
 */
void oracle_page_world(const struct oracle_world *w, const struct decisions_comm *c, FILE *to);
void oracle_page_tail(const char *path, const struct oracle_world *last, FILE *to);
