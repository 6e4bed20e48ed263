/* Prints the text of the footprint kernels. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "shim/gate/cuda-footprint.h"

int main(void)
{
	CLEANUP(freep) char *text = cuda_footprint_ptx();

	return text && fputs(text, stdout) >= 0 ? 0 : 1;
}
