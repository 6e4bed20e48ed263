/* A stand-in for the real library, made from the symbol table: every pncclX counts its
 * calls and spoils errno. */
#include <errno.h>
#include <string.h>

#include "shim/real/nccl-api.h"

enum {
#define NCCL_SYMBOL(how, ret, name, params, args) CALL_##name,
#include "shim/real/nccl-symbols.h"
#undef NCCL_SYMBOL
	CALLS
};

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned int fake_calls[CALLS];

#define RESULT_OWN(ret) \
	return (ret)    \
	{               \
		0       \
	}
#define RESULT_PLAIN(ret) \
	return (ret)      \
	{                 \
		0         \
	}
#define RESULT_ON_REAL(ret) \
	return (ret)        \
	{                   \
		0           \
	}
#define RESULT_REFUSE(ret) \
	return (ret)       \
	{                  \
		0          \
	}
#define RESULT_PLAIN_VOID(ret) (void)0

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NCCL_SYMBOL(how, ret, name, params, args) \
	EXPORT ret pnccl##name params             \
	{                                         \
		fake_calls[CALL_##name]++;        \
		errno = ERANGE;                   \
		RESULT_##how(ret);                \
	}
#include "shim/real/nccl-symbols.h"
