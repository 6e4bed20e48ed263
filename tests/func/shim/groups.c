/* Splits as PyTorch makes them: a world of axes, a group along each of them and along two
 * together, with the colors that PyTorch passes. The job's communicators must have the sizes
 * and the places of its groups, though no call says how many ranks gave a color.
 *
 *   groups WORLD REAL,REAL,... AXIS AXIS...     sizes, fastest first; RANK says who we are */
#include "job.h"
#include "members/color.h"

#define AXES_MAX 4

static int n_axes, sizes[AXES_MAX], strides[AXES_MAX];

/* The ranks of our group along @axes in order. Return: how many; *ret_place: which is us. */
static int group_of(unsigned axes, int *ret, int *ret_place)
{
	int count = 0;

	for (int v = 0; v < n; v++) {
		int is_in = 1;

		for (int a = 0; a < n_axes; a++)
			is_in = is_in && (axes >> a & 1 ||
					  v / strides[a] % sizes[a] == me / strides[a] % sizes[a]);
		if (!is_in)
			continue;
		if (v == me)
			*ret_place = count;
		ret[count++] = v;
	}
	return count;
}

static void check_group(ncclComm_t world, unsigned axes, int is_folded, cudaStream_t stream)
{
	struct color_hash h = COLOR_HASH_INIT;
	int *ranks = calloc((size_t)n, sizeof(*ranks)), place = -1, size, rank;
	int count = group_of(axes, ranks, &place);
	float one = 1, sum = 0;
	ncclComm_t comm;
	void *a;

	for (int i = 0; i < count; i++)
		color_hash_add(&h, (uint32_t)ranks[i]);
	NCCL(ncclCommSplit(world, is_folded ? color_of_fold(&h) : color_of_tuple(&h), place, &comm,
			   NULL));
	NCCL(ncclCommCount(comm, &size));
	NCCL(ncclCommUserRank(comm, &rank));
	CHECK(size == count && rank == place, "axes %x: rank %d of %d, not %d of %d", axes, rank,
	      size, place, count);
	CUDA(cudaMalloc(&a, sizeof(one)));
	CUDA(cudaMemcpyAsync(a, &one, sizeof(one), cudaMemcpyHostToDevice, stream));
	NCCL(ncclAllReduce(a, a, 1, ncclFloat, ncclSum, comm, stream));
	CUDA(cudaMemcpyAsync(&sum, a, sizeof(sum), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK(sum == (float)count, "axes %x: the sum of ones is %g, not %d", axes, (double)sum,
	      count);
	CUDA(cudaFree(a));
	NCCL(ncclCommDestroy(comm));
	free(ranks);
}

int main(int argc, char **argv)
{
	cudaStream_t stream;
	ncclComm_t world;
	int stride = 1;

	if (argc < 4)
		return 2;
	job_start(argv);
	for (n_axes = 0; n_axes + 3 < argc && n_axes < AXES_MAX; n_axes++) {
		sizes[n_axes] = atoi(argv[n_axes + 3]);
		strides[n_axes] = stride;
		stride *= sizes[n_axes];
	}
	CHECK(stride == n, "the axes make %d ranks", stride);
	CUDA(cudaStreamCreate(&stream));
	NCCL(ncclCommInitRank(&world, n, id_of("world"), me));
	for (unsigned axes = 1; axes + 1 < 1u << n_axes; axes++) {
		check_group(world, axes, 0, stream);
		check_group(world, axes, 1, stream);
	}
	NCCL(ncclCommDestroy(world));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
