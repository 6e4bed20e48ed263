/* NCCL's topology file, as NCCL_TOPO_DUMP_FILE writes it. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "fabric/read/machine.h"

/* Document types and entities are refused. Return: 0; -EINVAL with FILE:LINE:COLUMN; -ENOMEM. */
int nccl_xml_read(const char *name, const char *text, size_t n, struct machine *ret,
		  struct err *err);
