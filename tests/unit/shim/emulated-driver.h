/* A CUDA driver of a few streams that only move when the test says so: step() carries out the next
 * thing of a stream, if that can go on. It knows captures, and graphs that are launched into a
 * stream. Every call can be made to fail. One thread, deterministic. */
#pragma once

#include <stdbool.h>

#include "shim/gate/cuda-driver.h"

#define EMULATED_STREAMS 8
#define EMULATED_DEVICES 2

extern const struct cuda_driver emulated_driver;

CUstream emulated_stream(unsigned int i);
/* Return: whether the stream moved. */
bool emulated_step(unsigned int i);
/* Moves all streams until none can go on. Return: how many things were carried out. */
unsigned int emulated_run(void);
bool emulated_is_empty(unsigned int i);

void emulated_capture(unsigned int i);
struct emulated_graph *emulated_end_capture(unsigned int i);
void emulated_launch(unsigned int i, const struct emulated_graph *graph);
void emulated_graph_free(struct emulated_graph *graph);

/* The thread's, until a device is selected. */
void emulated_no_context(void);

/* The call of that number, counted from the next one, answers with an error; -1: none. */
void emulated_fail(int n);
unsigned int emulated_n_calls(void);
/* What is wrong with the driver. */
extern int emulated_version, emulated_n_devices, emulated_unified, emulated_rdma, emulated_dmabuf;
extern unsigned int emulated_n_kernels; /* launched */
extern char emulated_kernel[64];        /* name of the last one */
extern CUresult emulated_unsafe;        /* an unsafe call during a capture, not relaxed */

/* Everything as at the start; streams must be empty. */
void emulated_reset(void);
