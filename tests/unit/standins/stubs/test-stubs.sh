#!/bin/sh
# make-stubs: a library that asks for symbols of NVIDIA's libraries, with and without versions, gets just those; they do what the
# table says; products of matrices reach the runtime with their sizes; a library that lies beside it gets no stub, and an action that nobody knows is an error.
set -eu
make_stubs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cc=${CC:-cc}

# What the wheel's builders linked against: names and versions, nothing behind them.
real() { # soname version-or-"-" symbol...
	soname=$1 version=$2
	shift 2
	for s in "$@"; do echo "long $s(void) { return -1; }"; done > real.c
	map=
	if [ "$version" != - ]; then
		echo "$version { global: *; };" > real.map
		map=-Wl,--version-script=real.map
	fi
	# shellcheck disable=SC2086 # nothing, or one word
	$cc -shared -fPIC -o "real/$soname" -Wl,-soname,"$soname" $map real.c
}
mkdir real wheel
real libcublas.so.13 libcublas.so.13 cublasCreate_v2 cublasDestroy_v2 cublasSgemm_v2 cublasGetMathMode cublasCher2k_v2 \
	cublasSetStream_v2 cublasSetMathMode cublasGemmStridedBatchedEx
real libcublasLt.so.13 libcublasLt.so.13 cublasLtMatmulAlgoGetHeuristic cublasLtMatmulDescCreate cublasLtMatrixLayoutCreate \
	cublasLtMatrixLayoutSetAttribute cublasLtMatmul
real libcudnn.so.9 libcudnn.so.9 cudnnGetVersion cudnnGetProperty cudnnBackendCreateDescriptor cudnnBackendGetAttribute \
	cudnnGetErrorString cudnnRNNForward
real libcufft.so.12 libcufft.so.12 cufftCreate cufftXtExec
real libcusparseLt.so.0 - cusparseLtInit
real libcurand.so.10 libcurand.so.10 curandUnused
real libcudart.so.13 libcudart.so.13 cudaMalloc
real libnvbundled.so.1 - nvbundled_call
cp real/libnvbundled.so.1 wheel/

cat > user.c <<'END'
#include <stdio.h>
#include <string.h>
#define CHECK(x) do { if (!(x)) { printf("not so: %s\n", #x); bad = 1; } } while (0)
typedef void *p;
typedef long long ll;
int cublasCreate_v2(void **), cublasDestroy_v2(void *), cublasSetStream_v2(p, p), cublasSetMathMode(p, int);
int cublasSgemm_v2(p, int, int, int, int, int, p, p, int, p, int, p, p, int);
int cublasGemmStridedBatchedEx(p, int, int, int, int, int, p, p, int, int, ll, p, int, int, ll, p, p, int, int, ll, int, int, int);
int cublasLtMatmulDescCreate(p *, int, int), cublasLtMatrixLayoutCreate(p *, int, unsigned long, unsigned long, ll);
int cublasLtMatrixLayoutSetAttribute(p, int, p, unsigned long), cublasLtMatmul(p, p, p, p, p, p, p, p, p, p, p, p, p, p, unsigned long, p);
int cublasGetMathMode(void *, int *), cublasCher2k_v2(void);
int cublasLtMatmulAlgoGetHeuristic(int, int, int, int, int, int, int, int, int, int *);
unsigned long cudnnGetVersion(void);
const char *cudnnGetErrorString(int);
int cudnnGetProperty(int, int *), cudnnBackendCreateDescriptor(int, void **), cudnnRNNForward(void);
int cudnnBackendGetAttribute(void *, int, int, long, long *, void *);
int cufftCreate(int *), cufftXtExec(int), cusparseLtInit(void *), cudaMalloc(void), nvbundled_call(void);
int user(void)
{
	int bad = 0, n[2] = {7, 7}, a = 0, b = 0;
	void *handle = NULL, *descriptor = (void *)5;
	void *a_layout, *d_layout;
	int batch = 3;
	long count = 0, sizes[2] = {9, 9};

	CHECK(cublasCreate_v2(&handle) == 0 && handle);
	CHECK(cublasSetStream_v2(handle, (p)0x77) == 0);
	CHECK(cublasSgemm_v2(handle, 0, 0, 4, 5, 6, 0, 0, 4, 0, 5, 0, 0, 6) == 0);
	CHECK(cublasSetMathMode(handle, 3) == 0);
	CHECK(cublasSgemm_v2(handle, 0, 0, 7, 5, 6, 0, 0, 4, 0, 5, 0, 0, 6) == 0);
	CHECK(cublasGemmStridedBatchedEx(handle, 0, 0, 8, 5, 6, 0, 0, 14, 8, 1, 0, 14, 6, 1, 0, 0, 14, 8, 1, 9, 68, 0) == 0);
	CHECK(cublasDestroy_v2(handle) == 0);
	CHECK(cublasLtMatmulDescCreate(&handle, 68, 0) == 0);
	CHECK(cublasLtMatrixLayoutCreate(&a_layout, 2, 6, 100, 6) == 0 && cublasLtMatrixLayoutCreate(&d_layout, 2, 100, 5, 100) == 0);
	CHECK(cublasLtMatmul(0, handle, 0, 0, a_layout, 0, 0, 0, 0, 0, 0, d_layout, 0, 0, 0, (p)0x78) == 0);
	CHECK(cublasLtMatrixLayoutSetAttribute(d_layout, 5, &batch, 4) == 0);
	CHECK(cublasLtMatmul(0, handle, 0, 0, a_layout, 0, 0, 0, 0, 0, 0, d_layout, 0, 0, 0, (p)0x78) == 13);
	CHECK(cublasGetMathMode(NULL, n) == 0 && n[0] == 0 && n[1] == 7);
	CHECK(cublasCher2k_v2() == 15);
	CHECK(cublasLtMatmulAlgoGetHeuristic(0, 0, 0, 0, 0, 0, 0, 0, 0, n) == 0 && n[0] == 1);
	CHECK(cudnnGetVersion() == 91203);
	CHECK(cudnnGetProperty(0, n) == 0 && n[0] == 9);
	CHECK(cudnnGetProperty(1, n) == 0 && n[0] == 12);
	CHECK(cudnnGetProperty(2, n) == 0 && n[0] == 3 && n[1] == 7);
	CHECK(cudnnBackendCreateDescriptor(3, &handle) == 0 && handle);
	CHECK(cudnnBackendGetAttribute(handle, 1, 3, 2, &count, sizes) == 0 && count == 1 && sizes[0] == 0 && sizes[1] == 9);
	CHECK(cudnnBackendGetAttribute(handle, 1, 15, 1, &count, &descriptor) == 0 && descriptor == (void *)5);
	CHECK(cudnnBackendGetAttribute(handle, 1, 3, 0, &count, NULL) == 0 && count == 1);
	CHECK(strstr(cudnnGetErrorString(1), "stub"));
	CHECK(cudnnRNNForward() == 3000 && cufftXtExec(1) == 16);
	CHECK(cufftCreate(&a) == 0 && cufftCreate(&b) == 0 && a != b);
	CHECK(cusparseLtInit(&handle) == 0);
	CHECK(nvbundled_call() == -1);
	return bad;
}
int user_of_the_runtime(void) { return cudaMalloc(); }
END
$cc -shared -fPIC -o wheel/libuser.so user.c -Wl,--no-as-needed real/*.so.*

"$make_stubs" wheel stubs CUDNN=91203 > made
want='libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcurand.so.10 libcusparseLt.so.0 '
[ "$(LC_ALL=C sort made | tr '\n' ' ')" = "$want" ] || { echo "made: $(cat made)"; exit 1; }

echo 'int user(void); int main(void) { return user(); }' > main.c
mkdir libs
cp stubs/* wheel/* libs/
cat > runtime.c <<'END'
#include <stdio.h>
struct product { int type; unsigned long long m, n, k, batch; };
int __cudaNboxProduct(void *stream, const struct product *p)
{
	printf("%p %d %llux%llux%llux%llu\n", stream, p->type, p->m, p->n, p->k, p->batch);
	return p->batch == 3;
}
long cudaMalloc(void) { return -1; }
END
echo 'libcudart.so.13 { global: *; };' > runtime.map
$cc -shared -fPIC -o libs/libcudart.so.13 -Wl,-soname,libcudart.so.13 -Wl,--version-script=runtime.map runtime.c
$cc -o main main.c -Llibs -l:libuser.so -Wl,--allow-shlib-undefined -Wl,-rpath-link,libs
LD_LIBRARY_PATH=libs LD_BIND_NOW=1 ./main > products
# types: float, of TF32 by the math mode, bfloat16, half
printf '%s\n' '0x77 1 4x5x6x1' '0x77 2 7x5x6x1' '0x77 4 8x5x6x9' '0x78 3 100x5x6x1' '0x78 3 100x5x6x3' | cmp - products || { cat products; exit 1; }
NBOX_HOST_STUBS_LOG=1 LD_LIBRARY_PATH=libs ./main > products 2> log
grep -q '^stub: cublasCher2k_v2: refuse 15$' log || { cat log; exit 1; }
[ "$(grep -c 'cudnnGetProperty' log)" = 1 ] || { echo "said more than once"; exit 1; }
! readelf -W --dyn-syms stubs/libcublas.so.13 | grep -q cublasDgemm || { echo "more than was asked for"; exit 1; }

mkdir table
cp "$(dirname "$make_stubs")"/* table/
sed -i 's/^cublasCreate_v2 .*/cublasCreate_v2 invent 1/' table/functions
if table/make-stubs wheel stubs2 CUDNN=91203 > /dev/null 2> log; then
	echo "an unknown action was taken"
	exit 1
fi
grep -q "unknown action invent for cublasCreate_v2" log || { cat log; exit 1; }
echo "stubs: ok"
