/* Programs that include <cuda_runtime.h> from plain C get the runtime API. */
#pragma once

#include "cuda_runtime_api.h"
