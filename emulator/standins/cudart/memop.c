/* cuStreamWriteValue and cuStreamWaitValue.
 *
 * The waiting stream's thread spins for a moment, then sleeps on the word's low half, which is
 * the first one on the little-endian machines that CUDA runs on. A write through a stream wakes
 * it. It sees any other write at its next look, AWAIT_LOOK_NS later at most; a writer that knows
 * of it may FUTEX_WAKE it, with the shared kind of futex. */
#define CUDA_NO_V2_NAMES
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "futex.h"
#include "mark.h"
#include "memory.h"
#include "pace.h"
#include "runtime.h"
#include "submit.h"

#include "base/cleanup.h"
#include <cuda.h>

#define AWAIT_SPIN_NS 2000u
#define AWAIT_LOOK_NS 45000u

static uint64_t word_load(const struct command *command)
{
	/* Acquire pairs with the writer's release, or with the plain store of a program's thread
	 * that x86 and arm64 order by other means. */
	if (command->word.bytes == 4)
		return atomic_load_explicit((_Atomic uint32_t *)command->word.addr,
					    memory_order_acquire);
	return atomic_load_explicit((_Atomic uint64_t *)command->word.addr, memory_order_acquire);
}

static bool word_matches(const struct command *command)
{
	uint64_t value = command->word.value, word = word_load(command);
	bool is_short = command->word.bytes == 4;

	switch (command->word.flags & 3) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return word == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (word & value) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return is_short ? ~(uint32_t)(word | value) != 0 : ~(word | value) != 0;
	default: /* GEQ, cyclic */
		return is_short ? (int32_t)((uint32_t)word - (uint32_t)value) >= 0
				: (int64_t)(word - value) >= 0;
	}
}

static void write_run(const struct command *command)
{
	/* Release: what the stream did before is visible to who sees the value. */
	if (command->word.bytes == 4)
		atomic_store_explicit((_Atomic uint32_t *)command->word.addr,
				      (uint32_t)command->word.value, memory_order_release);
	else
		atomic_store_explicit((_Atomic uint64_t *)command->word.addr, command->word.value,
				      memory_order_release);
	futex_wake_all(command->word.addr);
}

static void await_run(const struct command *command)
{
	static _Thread_local bool is_precise;
	uint64_t until;
	uint32_t low;

	if (word_matches(command))
		return;
	until = mark_now_ns() + AWAIT_SPIN_NS;
	while (mark_now_ns() < until)
		if (word_matches(command))
			return;
	if (!is_precise) {
		/* The thread is ours: without this a sleep of 45 us lasts 95. */
		prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
		is_precise = true;
	}
	while (!runtime_is_stopping()) {
		low = atomic_load_explicit((_Atomic uint32_t *)command->word.addr,
					   memory_order_relaxed);
		if (word_matches(command))
			return;
		futex_wait(command->word.addr, low, AWAIT_LOOK_NS);
	}
}

static const struct command_type write_command = {
	.run = write_run,
	.is_capturable = true,
	.node = cudaGraphNodeTypeEmpty, /* the runtime API has no name for memory operations */
};

static void await_and_pace(const struct command *command)
{
	await_run(command);
	pace_not_before_now();
}

static const struct command_type await_command = {
	.run = await_and_pace,
	.is_capturable = true,
	.node = cudaGraphNodeTypeEmpty,
};

static CUresult submit(CUstream handle, CUdeviceptr addr, const struct command *command)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);
	void *ptr = (void *)(uintptr_t)addr;

	if (error != cudaSuccess)
		return (CUresult)error;
	if (addr % command->word.bytes || !memory_is_device_usable(ptr, command->word.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* The two enumerations agree in all that stream_submit() returns. */
	return (CUresult)stream_submit(stream, command);
}

static CUresult write_value(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned bytes,
			    unsigned flags)
{
	struct command command = {.type = &write_command};

	command.word.addr = (void *)(uintptr_t)addr;
	command.word.value = value;
	command.word.bytes = bytes;
	if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return submit(stream, addr, &command);
}

static CUresult wait_value(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned bytes,
			   unsigned flags)
{
	struct command command = {.type = &await_command};

	command.word.addr = (void *)(uintptr_t)addr;
	command.word.value = value;
	command.word.bytes = bytes;
	command.word.flags = flags;
	if (flags & ~(3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH))
		return CUDA_ERROR_INVALID_VALUE;
	return submit(stream, addr, &command);
}

/* The plain names and the _v2 ones differ in NVIDIA's driver in flags that do not matter here. */
#define MEMOP(name, bits, fn)                                                                    \
	NBOX_CUDART_API CUresult name(CUstream stream, CUdeviceptr addr, cuuint##bits##_t value, \
				      unsigned int flags);                                       \
	CUresult name(CUstream stream, CUdeviceptr addr, cuuint##bits##_t value,                 \
		      unsigned int flags)                                                        \
	{                                                                                        \
		return fn(stream, addr, value, bits / 8, flags);                                 \
	}

MEMOP(cuStreamWriteValue32, 32, write_value)
MEMOP(cuStreamWriteValue64, 64, write_value)
MEMOP(cuStreamWaitValue32, 32, wait_value)
MEMOP(cuStreamWaitValue64, 64, wait_value)
MEMOP(cuStreamWriteValue32_v2, 32, write_value)
MEMOP(cuStreamWriteValue64_v2, 64, write_value)
MEMOP(cuStreamWaitValue32_v2, 32, wait_value)
MEMOP(cuStreamWaitValue64_v2, 64, wait_value)
