// What clang needs to compile a CUDA kernel without the CUDA toolkit: qualifiers, thread indices, a vector type.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

// threadIdx, blockIdx, blockDim, gridDim; this header comes with clang.
#include <__clang_cuda_builtin_vars.h>

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};
