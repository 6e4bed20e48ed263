/* How long an op takes whose algorithm nbox does not play message by message: NVLS, NVLSTree, PAT.
 */
#ifndef NCCL_WHOLE_H
#define NCCL_WHOLE_H

#include "choice.h"

/* @bytes: the larger of a rank's buffers. In ns. */
double whole_ns(const struct comm *c, const struct nbox_fabric *f, uint32_t kind,
		const struct choice *ch, uint64_t bytes);

#endif
