/* The tables, one a file. A field's line: where it stands and how many bytes it has, NCCL's name of
 * it, and after "->" what it becomes in a virtual rank's record. Files are those of NCCL's src/. */
#pragma once

#include "records.h"

extern const struct nccl_records records_2_21_5;
extern const struct nccl_records records_2_22_3;
extern const struct nccl_records records_2_23_4;
extern const struct nccl_records records_2_24_3;
extern const struct nccl_records records_2_25_1;
extern const struct nccl_records records_2_26_2;
extern const struct nccl_records records_2_27_3;
extern const struct nccl_records records_2_28_3;
extern const struct nccl_records records_2_28_7;
extern const struct nccl_records records_2_29_2;
extern const struct nccl_records records_2_29_7;
extern const struct nccl_records records_2_30_3;
extern const struct nccl_records records_2_30_7;

/* May @r, the table of @version or NULL, be used? As nccl_records_find(). */
bool records_are_allowed(const struct nccl_records *r, int version, bool forced, char *sentence,
			 size_t size);

/* Why a later all-gather is refused, and what to set. */
#define REFUSED_COLLNET \
	"places in CollNet, which a virtual rank has none in: set NCCL_COLLNET_ENABLE=0"
#define REFUSED_COUNTS                                                                               \
	"counts of connections for GIN, of suspended memory, or places in CollNet, which a virtual " \
	"rank has none of: set NCCL_GIN_ENABLE=0 and NCCL_COLLNET_ENABLE=0, and suspend nothing"
#define REFUSED_HANDLES \
	"listen handles of GIN, which a virtual rank has none of: set NCCL_GIN_ENABLE=0"
