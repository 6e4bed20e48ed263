/* Shared by the files of members/, not for others. */
#pragma once

#include "members/members.h"

/* Takes over @table; keeps it only when no progression says the same. */
void members_set_table(struct members *m, uint32_t n_ranks, uint32_t *table);
void members_set_progression(struct members *m, uint32_t n_ranks, uint32_t base, uint32_t stride);
