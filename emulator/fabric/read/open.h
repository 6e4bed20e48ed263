/* A fabric by what the user gave: a preset's name or a file, whatever it holds. */
#pragma once

#include "fabric/fabric.h"

#define FABRIC_FILE_MAX_BYTES (1u << 20)

/* Whether fabric_open() takes @text for a file's name. */
bool fabric_is_file(const char *text);
/* @text: a preset's name; "machine": fabric_open_machine(""); else a file: nbox's own YAML, NCCL's
 * topology XML (then the network is that of one switch), or ASTRA-sim's analytical network.
 * @n_nodes: 0: those of the file, 1 where it does not say. @gpus_per_node: 0: all. Return: 0;
 * -ENOENT, -EINVAL, ... with the sentence. */
int fabric_open(const char *text, uint32_t n_nodes, uint32_t gpus_per_node, struct fabric **ret,
		struct err *err);
/* This machine's node as sysfs.h reads it, from @root; the network is assumed. As fabric_open(). */
int fabric_open_machine(const char *root, uint32_t n_nodes, uint32_t gpus_per_node,
			struct fabric **ret, struct err *err);
/* What a file has in it; @name is for sentences. As fabric_open(). */
int fabric_parse(const char *name, const char *text, size_t n, uint32_t n_nodes,
		 uint32_t gpus_per_node, struct fabric **ret, struct err *err);
