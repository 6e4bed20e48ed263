/* The libcuda.so.1 of tests (driver.c), whose streams only move when the test says so:
 * emulated_step() lets a stream carry out the next thing, if that can go on. Each thing stands
 * between two host functions: one that waits for the step, one that answers it. One thread calls
 * these, so that all is deterministic. What is wrong with the driver is in NBOX_TEST_DRIVER. */
#pragma once

#include <stdbool.h>

#include "shim/gate/cuda-driver.h"

#define EMULATED_STREAMS 8
#define EMULATED_DEVICES 2

extern struct cuda_driver emulated_driver;

/* The call of that number, counted from the next one, answers with an error; -1: none. */
extern _Atomic int as_driver_fail_in;
extern _Atomic unsigned int as_driver_n_calls, as_driver_n_kernels;
extern const char *_Atomic as_driver_kernel; /* the text of the last one, from its name on */
/* Called before and after each thing that is enqueued; @wait_at: it waits for @value there. */
extern void (*as_driver_around)(CUstream s, void *wait_at, uint32_t value, int is_end);

/* Fills emulated_driver; to be called first. Return: as cuda_driver_find(). */
int emulated_open(struct err *err);

CUstream emulated_stream(unsigned int i);
/* Return: whether the stream moved. */
bool emulated_step(unsigned int i);
/* Moves all streams until none can go on. Return: how many things were carried out. */
unsigned int emulated_run(void);
bool emulated_is_empty(unsigned int i);

void emulated_capture(unsigned int i);
/* Return: NULL: a call was unsafe during the capture. */
struct emulated_graph *emulated_end_capture(unsigned int i);
void emulated_launch(unsigned int i, const struct emulated_graph *graph);
void emulated_graph_free(struct emulated_graph *graph);
