/* Where nodes hang in a network with leaves: numbers by formula. */
#pragma once

#include "fabric/fabric.h"

uint32_t leaf_rails(const struct fabric *f); /* the leaves of a group of rails; else 1 */
/* The leaf that NIC @nic of @node is at. */
uint32_t leaf_of(const struct fabric *f, uint32_t node, uint32_t nic);
uint32_t leaf_count(const struct fabric *f);     /* 0: a network without leaves */
uint32_t leaf_pod_count(const struct fabric *f); /* pods, or groups of a dragonfly; else 0 */
/* Has each leaf, or switch of FABRIC_CABLES, whole domains only? Not where there is one switch. */
bool leaf_is_cut(const struct fabric *f);
