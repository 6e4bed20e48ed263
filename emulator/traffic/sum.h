/* The sum of several messages of NCCL's, and the average, as its protocol lays them out. */
#pragma once

#include "base/err.h"
#include "traffic/body.h"

/* What @dtype, @redop and @protocol (enum coll_dtype, coll_redop, plugin_protocol) make of @bodies.
 * The references are consumed, also with an error; some may be NULL: empty. Flags that the protocol
 * puts among the data become those of any of them. Return: 0; -EPROTO with the sentence; -ENOMEM.
 */
int sum_bodies(struct traffic_bodies *pool, uint32_t protocol, uint32_t dtype, uint32_t redop,
	       struct traffic_body **bodies, uint32_t n, struct traffic_body **ret,
	       struct err *err);
/* Divides *@body's elements by @by: what NCCL does last for an average of integers. NULL: empty.
 * Where others have it, *@body becomes a copy. Return: as above. */
int sum_divide(struct traffic_bodies *pool, uint32_t protocol, uint32_t dtype, uint32_t by,
	       struct traffic_body **body, struct err *err);
