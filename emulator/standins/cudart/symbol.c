/* The functions about device variables. */
#include "registry.h"
#include "runtime.h"

cudaError_t cudaGetSymbolAddress(void **ptr, const void *host)
{
	struct symbol *symbol = symbol_find(SYMBOL_VARIABLE, host);

	if (!ptr)
		return runtime_return(cudaErrorInvalidValue);
	return runtime_return(symbol ? symbol_copy(symbol, ptr) : cudaErrorInvalidSymbol);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *host)
{
	struct symbol *symbol = symbol_find(SYMBOL_VARIABLE, host);

	if (!size)
		return runtime_return(cudaErrorInvalidValue);
	if (!symbol)
		return runtime_return(cudaErrorInvalidSymbol);
	*size = symbol->size;
	return cudaSuccess;
}

/* Return: where @count bytes at @offset of the variable are. */
static cudaError_t locate(const void *host, size_t count, size_t offset, char **ret_ptr)
{
	struct symbol *symbol = symbol_find(SYMBOL_VARIABLE, host);
	cudaError_t error;
	void *ptr;

	if (!symbol)
		return cudaErrorInvalidSymbol;
	if (offset > symbol->size || count > symbol->size - offset)
		return cudaErrorInvalidValue;
	error = symbol_copy(symbol, &ptr);
	if (error == cudaSuccess)
		*ret_ptr = (char *)ptr + offset;
	return error;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
			       enum cudaMemcpyKind kind)
{
	cudaError_t error;
	char *ptr;

	if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
	    kind != cudaMemcpyDefault)
		return runtime_return(cudaErrorInvalidMemcpyDirection);
	error = locate(symbol, count, offset, &ptr);
	return error == cudaSuccess ? cudaMemcpy(ptr, src, count, kind) : runtime_return(error);
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
				 enum cudaMemcpyKind kind)
{
	cudaError_t error;
	char *ptr;

	if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
	    kind != cudaMemcpyDefault)
		return runtime_return(cudaErrorInvalidMemcpyDirection);
	error = locate(symbol, count, offset, &ptr);
	return error == cudaSuccess ? cudaMemcpy(dst, ptr, count, kind) : runtime_return(error);
}
