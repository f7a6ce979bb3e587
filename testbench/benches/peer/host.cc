// The host program of one kernel of scenarios/speed, at the size that it has there, for GPGPU-Sim. GPGPU-Sim replaces CUDA's runtime
// library. `main` makes the calls that nvcc would generate, checks the kernel's results, and prints the user time of the process.
//
// Usage: host KERNEL. Needs no CUDA header. Link it to any libcudart: GPGPU-Sim's is loaded at run time.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <sys/resource.h>

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};

// The calls of CUDA's runtime library that nvcc generates.
extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
unsigned __cudaPushCallConfiguration(Dim, Dim, size_t, void *);
int cudaLaunchKernel(const void *, Dim, Dim, void **, size_t, void *);
int cudaDeviceSynchronize();
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
}

using Floats = std::vector<float>;

static void must(int error, const char *what) {
    if (error) {
        std::fprintf(stderr, "%s: error %d\n", what, error);
        std::exit(1);
    }
}

static float *to_device(const Floats &values) {
    void *at = nullptr;
    must(cudaMalloc(&at, values.size() * 4), "cudaMalloc");
    must(cudaMemcpy(at, values.data(), values.size() * 4, 1), "cudaMemcpy to the device");
    return static_cast<float *>(at);
}

static Floats uniform(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(-1, 1);
    Floats floats(n);
    for (float &value : floats) value = values(random);
    return floats;
}

static const char kernel_handle = 0;

static void launch(Dim grid, Dim block, std::vector<void *> args) {
    must(__cudaPushCallConfiguration(grid, block, 0, nullptr), "configuration");
    must(cudaLaunchKernel(&kernel_handle, grid, block, args.data(), 0, nullptr), "launch");
    must(cudaDeviceSynchronize(), "synchronize");
}

// Exits unless each element on the device is within 1e-3 of `expected` for its index.
static void check(const float *device, size_t n, const std::function<double(size_t)> &expected) {
    Floats found(n);
    must(cudaMemcpy(found.data(), device, n * 4, 2), "cudaMemcpy from the device");
    for (size_t i = 0; i < n; i++)
        if (!(std::fabs(found[i] - expected(i)) < 1e-3)) {
            std::fprintf(stderr, "element %zu is %g, not %g\n", i, found[i], expected(i));
            std::exit(1);
        }
}

static void add(bool is_2d) {
    int n = 1 << 20, side = 1024;
    Floats a = uniform(n, 1), b = uniform(n, 2);
    float *da = to_device(a), *db = to_device(b), *dc = to_device(Floats(n));
    if (is_2d)
        launch({64, 64}, {16, 16}, {&da, &db, &dc, &side, &side});
    else
        launch({4096}, {256}, {&da, &db, &dc, &n});
    check(dc, n, [&](size_t i) { return a[i] + b[i]; });
}

static void sgemm() {
    int n = 256;
    Floats a = uniform(n * n, 1), b = uniform(n * n, 2);
    float *da = to_device(a), *db = to_device(b), *dc = to_device(Floats(n * n));
    launch({16, 16}, {16, 16}, {&da, &db, &dc, &n});
    check(dc, n * n, [&](size_t i) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += double(a[i / n * n + k]) * b[k * n + i % n];
        return sum;
    });
}

static void reduction() {
    Floats a = uniform(1 << 20, 1);
    double sum = 0;
    for (float value : a) sum += value;
    float *from = to_device(a);
    for (int n = 1 << 20; n > 1; n = (n + 255) / 256) {
        unsigned blocks = (n + 255) / 256;
        float *to = to_device(Floats(blocks));
        launch({blocks}, {256}, {&from, &to, &n});
        from = to;
    }
    check(from, 1, [&](size_t) { return sum; });
}

static void transpose() {
    int n = 1024;
    Floats a = uniform(n * n, 1);
    float *da = to_device(a), *dt = to_device(Floats(n * n));
    launch({32, 32}, {32, 8}, {&da, &dt, &n});
    check(dt, n * n, [&](size_t i) { return a[i % n * n + i / n]; });
}

int main(int n_args, char **args) {
    if (n_args != 2) {
        std::fprintf(stderr, "usage: host KERNEL\n");
        return 2;
    }
    std::string kernel = args[1];
    std::string entry = kernel == "reduction" ? "reduce_sum" : kernel;
    void **binary = __cudaRegisterFatBinary(nullptr);
    __cudaRegisterFunction(binary, &kernel_handle, entry.data(), entry.c_str(), -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    if (kernel == "vector_add" || kernel == "matrix_add_2d")
        add(kernel == "matrix_add_2d");
    else if (kernel == "sgemm_naive" || kernel == "sgemm_tiled")
        sgemm();
    else if (kernel == "reduction")
        reduction();
    else if (kernel.rfind("transpose", 0) == 0)
        transpose();
    else
        must(1, "no such kernel");
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::printf("user seconds %.2f\n", usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6);
}
