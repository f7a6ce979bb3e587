// What clang needs to compile a CUDA kernel without the CUDA toolkit. Add what else a kernel uses: clang has a builtin for each
// instruction of PTX, such as `__nvvm_shfl_sync_bfly_i32` for `shfl.sync.bfly.b32`.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

// threadIdx, blockIdx, blockDim, gridDim; this header comes with clang, and __syncthreads is a builtin.
#include <__clang_cuda_builtin_vars.h>

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};

__device__ inline unsigned __float_as_uint(float x) {
    return __builtin_bit_cast(unsigned, x);
}

__device__ inline float __uint_as_float(unsigned x) {
    return __builtin_bit_cast(float, x);
}

// A type of 4 or 8 bytes, from the lane whose number differs in the bits of `lanes`.
template <class T> __device__ inline T __shfl_xor_sync(unsigned mask, T x, int lanes) {
    struct Words {
        int word[sizeof(T) / 4];
    } words = __builtin_bit_cast(Words, x);
    for (int &word : words.word) word = __nvvm_shfl_sync_bfly_i32(mask, word, lanes, 31);
    return __builtin_bit_cast(T, words);
}

// Atomics of integers; `__nvvm_atom_add_gen_f` adds floats.
template <class T> __device__ inline T atomicAdd(T *at, T x) {
    return __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
}

template <class T> __device__ inline T atomicMax(T *at, T x) {
    return __atomic_fetch_max(at, x, __ATOMIC_RELAXED);
}
