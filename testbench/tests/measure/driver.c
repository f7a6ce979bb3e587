// A CUDA driver that has memory and no GPU: launches do nothing, and every graph takes 0.1 ms.
#include <stdlib.h>
#include <string.h>

#define NOTHING(name) int name(void) { return 0; }
NOTHING(cuInit) NOTHING(cuDeviceGet) NOTHING(cuDevicePrimaryCtxRetain) NOTHING(cuCtxSetCurrent) NOTHING(cuCtxSynchronize)
NOTHING(cuStreamCreate) NOTHING(cuStreamSynchronize) NOTHING(cuStreamBeginCapture_v2) NOTHING(cuStreamEndCapture)
NOTHING(cuEventCreate) NOTHING(cuEventRecord) NOTHING(cuGetErrorString)
NOTHING(cuGraphInstantiateWithFlags) NOTHING(cuGraphLaunch) NOTHING(cuGraphExecDestroy) NOTHING(cuGraphDestroy)
NOTHING(cuModuleGetFunction) NOTHING(cuFuncSetAttribute) NOTHING(cuLaunchKernelEx)

int cuDeviceGetName(char *text, int n, int device) { (void)n; (void)device; strcpy(text, "stub"); return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
// Error 222: the text has a newer PTX version than 9.0.
int cuModuleLoadDataEx(void **module, const char *text) { *module = 0; return strstr(text, ".version 9.5") ? 222 : 0; }
int cuMemAlloc_v2(void **address, size_t n) { *address = calloc(1, n); return *address == 0; }
int cuMemFree_v2(void *address) { free(address); return 0; }
int cuMemcpyHtoD_v2(void *to, const void *from, size_t n) { memcpy(to, from, n); return 0; }
int cuMemcpyDtoH_v2(void *to, const void *from, size_t n) {
    memcpy(to, from, n);
    // The clock kernel's results: 200,000 ns and 300,000 cycles.
    if (n == 16) { ((long long *)to)[0] = 200000; ((long long *)to)[1] = 300000; }
    return 0;
}
int cuMemsetD8_v2(void *to, unsigned char value, size_t n) { memset(to, value, n); return 0; }
int cuEventElapsedTime(float *milliseconds) { *milliseconds = 0.1f; return 0; }
