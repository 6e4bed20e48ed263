/* Where programs expect the profiler's switches. */
#pragma once

#include "cuda_runtime_api.h"
