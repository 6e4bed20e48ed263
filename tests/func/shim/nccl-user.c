/* A library that is linked with NCCL, such as a Python extension: loaded RTLD_LOCAL by
 * load.c. */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string.h>

int nccl_user(int n, int rank);

/* Return: 0 when a world of @n ranks all-reduced. */
__attribute__((visibility("default"))) int nccl_user(int n, int rank)
{
	cudaStream_t stream;
	ncclUniqueId id;
	ncclComm_t comm;
	float one = 1, *a;
	int count = 0;

	memset(&id, 0, sizeof(id));
	if (cudaStreamCreate(&stream) || cudaMalloc((void **)&a, sizeof(one)) ||
	    cudaMemcpy(a, &one, sizeof(one), cudaMemcpyHostToDevice))
		return 1;
	if (ncclCommInitRank(&comm, n, id, rank) || ncclCommCount(comm, &count) || count != n)
		return 2;
	if (ncclAllReduce(a, a, 1, ncclFloat, ncclSum, comm, stream) ||
	    cudaStreamSynchronize(stream) ||
	    cudaMemcpy(&one, a, sizeof(one), cudaMemcpyDeviceToHost))
		return 3;
	if (ncclCommDestroy(comm) || cudaFree(a) || cudaStreamDestroy(stream))
		return 4;
	return one == (float)n ? 0 : 5;
}
