/* Hash tables that say when there is no memory: an element that could not be added has hh.tbl NULL.
 */
#pragma once

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
