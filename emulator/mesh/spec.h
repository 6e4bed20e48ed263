/* How a tensor lies on a mesh of devices: hosts in rows, the devices of a host in columns. The spec
 * has a symbol for each dimension of the tensor: R, every device has all of it; S0, cut along the
 * hosts; S1, cut along the devices of a host; S01, cut along both, host by host. "RS01R@2x4" is
 * a tensor of three dimensions on 2 hosts of 4 devices.
 *
 * A dimension that does not divide is cut as frameworks do it: every tile is as long as the first,
 * but the last ones, which are shorter or empty. Frameworks pad those; padding is reported and
 * never sent. */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define MESH_DIMS 8     /* of a tensor, at most */
#define MESH_HOSTS 64   /* of a mesh */
#define MESH_DEVICES 64 /* of a host */

enum { MESH_BY_HOST = 1, MESH_BY_DEVICE = 2 };

struct mesh_spec {
	uint32_t hosts, devices; /* devices of each host */
	uint32_t n_dims;
	uint8_t cut[MESH_DIMS]; /* MESH_BY_..., or both; 0: R */
};

struct mesh_tensor {
	uint32_t n_dims;
	uint64_t dims[MESH_DIMS];
	uint32_t element_bytes;
};

/* A part of a tensor: elements from lo up to, but not with, hi in each dimension. */
struct mesh_box {
	uint64_t lo[MESH_DIMS], hi[MESH_DIMS];
};

/* "S0RR@2x4". Return: 0; -EINVAL with the sentence. */
int mesh_spec_parse(const char *text, struct mesh_spec *ret, struct err *err);
/* "1024x1024x512"; *ret has no element_bytes. Return: as above, also where it has more than 2^48
 * elements. */
int mesh_dims_parse(const char *text, struct mesh_tensor *ret, struct err *err);
/* "f32". Return: bytes of an element; -EINVAL with the sentence. */
int mesh_dtype_bytes(const char *text, struct err *err);

uint64_t mesh_elements(const struct mesh_tensor *t);
uint64_t mesh_bytes(const struct mesh_tensor *t);
uint64_t mesh_box_elements(const struct mesh_box *b, uint32_t n_dims);

/* Tiles are numbered as the tensor lies in memory: the last dimension's parts follow each other. */
uint32_t mesh_tiles(const struct mesh_spec *s);
/* The tile of a device; devices of one tile are replicas. @device: of the mesh, host by host. */
uint32_t mesh_tile_of(const struct mesh_spec *s, uint32_t device);
/* The devices of a tile, all replicas: @hosts hosts from @host on, @devices devices of each from
 * @device on. */
struct mesh_replicas {
	uint32_t host, hosts, device, devices;
};
void mesh_replicas(const struct mesh_spec *s, uint32_t tile, struct mesh_replicas *ret);
/* It may be empty. */
void mesh_tile_box(const struct mesh_spec *s, const struct mesh_tensor *t, uint32_t tile,
		   struct mesh_box *ret);
/* What frameworks add to the tensor, so that all tiles are alike. */
uint64_t mesh_pad_bytes(const struct mesh_spec *s, const struct mesh_tensor *t);
