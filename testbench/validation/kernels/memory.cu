// Memory microbenchmarks of `warpwave validate`. Each kernel makes the accesses that a public benchmark describes:
// gpubenches (chase, stride, block, l2sum, cachesum, s_*, small) and burtchell24 (a_*).
// memory.ptx is this file through nvcc: nvcc -ptx -arch=sm_80 memory.cu
typedef long long i64; typedef unsigned long long u64;
extern "C" __global__ void rebase(u64 *a, int n, int skip) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[(u64)i * skip] += (u64)a; }
extern "C" __global__ void chase(i64 *buf, i64 *sink, int n, int warm, i64 *out) {
  i64 *p = buf;
#pragma unroll 1
  for (int i = 0; i < warm; i += 32)
#pragma unroll
    for (int u = 0; u < 32; u++) p = (i64 *)*p;
  i64 t0 = clock64();
  if ((i64)p == 1) t0 = 5;
#pragma unroll 1
  for (int i = 0; i < n; i += 32)
#pragma unroll
    for (int u = 0; u < 32; u++) p = (i64 *)*p;
  if ((i64)p == 12313) sink[0] = 1;
  i64 t1 = clock64();
  if (threadIdx.x == 0) { out[0] = t0; out[1] = t1; }
}
template <typename T> __device__ void stride(T *A, T *B, int zero, int s, int N, i64 *out) {
  T sum = 0; T *A2 = A + (threadIdx.x % 64) * s;
  for (int k = 0; k < 8; k++) sum += A2[4 * k];
  __syncthreads();
  i64 t0 = clock64();
#pragma unroll 1
  for (int n = 0; n < N; n += 8) { A2 += zero; sum += A2[0] * A2[4]; sum += A2[8] * A2[12]; sum += A2[20] * A2[16]; sum += A2[24] * A2[28]; }
  if (sum == T(123123.23)) B[threadIdx.x] = sum;
  i64 t1 = clock64();
  out[2 * threadIdx.x] = t0; out[2 * threadIdx.x + 1] = t1;
}
extern "C" __global__ void stride_f(float *A, float *B, int zero, int s, int N, i64 *out) { stride(A, B, zero, s, N, out); }
extern "C" __global__ void stride_d(double *A, double *B, int zero, int s, int N, i64 *out) { stride(A, B, zero, s, N, out); }
template <typename T> __device__ void blockk(T *A, T *B, int zero, int pitch, int N, i64 *out) {
  T sum = 0; T *A2 = A + threadIdx.x % 64 + (threadIdx.y % 32) * pitch + pitch;
  for (int k = 0; k < 8; k++) sum += A2[4 * k];
  __syncthreads();
  i64 t0 = clock64();
#pragma unroll 1
  for (int n = 0; n < N; n += 8) { A2 += zero; sum += A2[0] * A2[4]; sum += A2[8] * A2[12]; sum += A2[20] * A2[16]; sum += A2[24] * A2[28]; }
  if (sum == T(123123.23)) B[threadIdx.x] = sum;
  i64 t1 = clock64(); int t = threadIdx.x + blockDim.x * threadIdx.y;
  out[2 * t] = t0; out[2 * t + 1] = t1;
}
extern "C" __global__ void block_f(float *A, float *B, int zero, int s, int N, i64 *out) { blockk(A, B, zero, s, N, out); }
extern "C" __global__ void block_d(double *A, double *B, int zero, int s, int N, i64 *out) { blockk(A, B, zero, s, N, out); }
// every block sums 64 x 1024 doubles; blockRun blocks share nothing
extern "C" __global__ void l2sum(double *A, const double *__restrict__ B, int run) {
  double s = 0;
#pragma unroll
  for (int i = 0; i < 32; i++) { int idx = (blockDim.x * run * i + (blockIdx.x % run) * 1024) * 2 + threadIdx.x; s += B[idx] * B[idx + 1024]; }
  s *= 1.3; if (threadIdx.x > 1233 || s == 23.12) A[threadIdx.x] += s;
}
// one block per SM, each sums the same N floats iters times
extern "C" __global__ void cachesum(float *A, const float *__restrict__ B, int zero, int N, int iters) {
  float s = 0; B += threadIdx.x;
#pragma unroll 1
  for (int it = 0; it < iters; it++) { B += zero;
#pragma unroll 16
    for (int i = 0; i < N; i += 256) s += B[i];
    s *= 1.3f; }
  if (s == 1233.f) A[threadIdx.x] += s;
}
// The published stream kernels take a length of 64 bits and a flag of one byte, so each thread makes a wide comparison before its access.
#define ST(name, body) extern "C" __global__ void name(double *A, const double *__restrict__ B, u64 n, bool f) { \
  extern __shared__ double sp[]; int t = threadIdx.x + blockIdx.x * blockDim.x; if (t >= n) return; if (f) sp[threadIdx.x] = B[threadIdx.x]; body; }
ST(s_init, A[t] = 0.23; if (f) A[t] = sp[t])
ST(s_read, double x = B[t]; if (f || x == 123.0) A[t] = x + sp[t])
ST(s_scale, A[t] = B[t] * 1.2; if (f) A[t] = sp[t])
extern "C" __global__ void small(double *A, const double *B, int size) { int t = threadIdx.x + blockIdx.x * blockDim.x; if (t >= size) return; A[t] = B[t] * 0.25; }
extern "C" __global__ void empty(int x) { }
extern "C" __global__ void l1v4(float4 *A, const float4 *B, int iters, i64 *out) {   // 16 KB read again and again
  float4 s = {0, 0, 0, 0}; i64 t0 = 0;
#pragma unroll 1
  for (int i = -1; i < iters; i++) { if (i == 0) { __syncthreads(); t0 = clock64(); }
#pragma unroll
    for (int k = 0; k < 4; k++) { float4 v = B[(threadIdx.x + k * 256 + i) & 1023]; s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w; } }
  i64 t1 = clock64(); if (s.x + s.y + s.z + s.w == 1.25f) A[threadIdx.x] = s; out[2 * threadIdx.x] = t0; out[2 * threadIdx.x + 1] = t1;
}
extern "C" __global__ void l1v1(float *A, const float *B, int iters, i64 *out) {
  float s = 0; i64 t0 = 0;
#pragma unroll 1
  for (int i = -1; i < iters; i++) { if (i == 0) { __syncthreads(); t0 = clock64(); }
#pragma unroll
    for (int k = 0; k < 8; k++) s += B[(threadIdx.x + k * 512 + i * 32) & 4095]; }
  i64 t1 = clock64(); if (s == 1.25f) A[threadIdx.x] = s; out[2 * threadIdx.x] = t0; out[2 * threadIdx.x + 1] = t1;
}
extern "C" __global__ void l1v2(double *A, const double *B, int iters, i64 *out) {
  double s = 0; i64 t0 = 0;
#pragma unroll 1
  for (int i = -1; i < iters; i++) { if (i == 0) { __syncthreads(); t0 = clock64(); }
#pragma unroll
    for (int k = 0; k < 8; k++) s += B[(threadIdx.x + k * 256 + i * 32) & 2047]; }
  i64 t1 = clock64(); if (s == 1.25) A[threadIdx.x] = s; out[2 * threadIdx.x] = t0; out[2 * threadIdx.x + 1] = t1;
}
#define LOOP(name, T, expr) extern "C" __global__ void name(T *a, int step, int n, i64 *out) { \
  int id = blockIdx.x * blockDim.x + threadIdx.x; T *p = a + (u64)id * step; \
  __syncthreads(); i64 t0 = clock64(); \
  _Pragma("unroll 1") for (int i = 0; i < n; i += 8) { _Pragma("unroll") for (int k = 0; k < 8; k++) { expr; } } \
  i64 t1 = clock64(); out[2 * id] = t0; out[2 * id + 1] = t1; }
LOOP(a_add, int, asm volatile("red.global.add.u32 [%0], %1;" ::"l"(p), "r"(1) : "memory"))
LOOP(a_addw, int, if ((threadIdx.x & 31) == 0) asm volatile("red.global.add.u32 [%0], %1;" ::"l"(a), "r"(32) : "memory"))
LOOP(a_addf, float, asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p), "f"(1.f) : "memory"))
LOOP(a_exch, int, { int r; asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(1) : "memory"); })
LOOP(a_ret, int, { int r; asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(k) : "memory"); if (r == 0x7fffffff) p++; })
LOOP(a_fence, int, { atomicAdd(p, 1); __threadfence(); })
LOOP(a_nofence, int, { atomicAdd(p, 1); })
LOOP(a_fencew, int, { *(volatile int *)p = k; __threadfence(); *(volatile int *)(p + 1024 * 1024) = k; })
LOOP(a_nofencew, int, { *(volatile int *)p = k; *(volatile int *)(p + 1024 * 1024) = k; })
#define INCREMENTS(name, between) extern "C" __global__ void name(int *a, int *b, int step, int n, i64 *out) { \
  int id = blockIdx.x * blockDim.x + threadIdx.x; int at = step * id; \
  __syncthreads(); i64 t0 = clock64(); \
  _Pragma("unroll 1") for (int i = 0; i < n; i += 8) { _Pragma("unroll") for (int k = 0; k < 8; k++) { a[at] += id; between; b[at] += id; } } \
  i64 t1 = clock64(); out[2 * id] = t0; out[2 * id + 1] = t1; }
INCREMENTS(a_rmw, )
INCREMENTS(a_rmwf, __threadfence())
