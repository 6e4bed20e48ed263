/* See result.h. */
#include "shim/entry/result.h"

#include <errno.h>

ncclResult_t result_of(int r)
{
	if (r >= 0)
		return (ncclResult_t)r;
	return r == -EINVAL || r == -EPROTO ? ncclInvalidUsage : ncclSystemError;
}
