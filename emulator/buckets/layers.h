/* The layers, or ops, of a network, as a text lists them, in the order of the forward pass:
 *
 *   # name [xN]  key=value ...
 *   embed        forward=1ms backward=2ms params=62MiB out=8MiB
 *   block x24    forward=4ms backward=8ms params=48MiB out=32MiB temp=4MiB
 *   gelu         forward=1ms backward=1ms out=8MiB kept=no fused=9ms
 *
 * Lines of a stepper's job that begin with layer are such lines, too. Of the keys only backward is
 * needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define LAYERS_MAX 65536

struct layer {
	char name[64];
	double forward_ns, backward_ns;
	double fused_ns;       /* its backward and that of the layer behind it as one op; NAN: not
				  known */
	uint64_t params_bytes; /* as many are its gradients */
	uint64_t out_bytes, temp_bytes;
	uint64_t grad_bytes; /* of its output; as many as that has, where nobody says otherwise */
	bool is_dropped;     /* kept=no: the backward pass makes its output anew */
	bool is_checkpoint;  /* checkpoint=yes: recomputation starts from it */
};

struct layers {
	struct layer *list; /* owned */
	size_t n;
};

/* @name: for the sentences, "FILE:3: ...". Return: 0; -EINVAL, -ENOMEM with the sentence. */
int layers_parse(const char *name, const char *text, struct layers *ret, struct err *err);
/* The same of the file @path. Return: as above; as file_read() has it. */
int layers_read(const char *path, struct layers *ret, struct err *err);
void layers_deinit(struct layers *l);
