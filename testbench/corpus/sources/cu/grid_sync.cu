// Barriers of the whole grid in a cooperative launch: rounds of sums, and a barrier with arrival and wait apart
//@ min_sm 70
//@ launch block=64 grid=any
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// In each round block b writes b + 1 + the total of the round before, and then sums what all blocks have written.
extern "C" __global__ void grid_rounds(unsigned *sums, unsigned *totals, int rounds)
{
    cg::grid_group grid = cg::this_grid();
    unsigned total = 0;
    for (int round = 0; round < rounds; round++) {
        if (threadIdx.x == 0)
            sums[blockIdx.x] = blockIdx.x + 1 + total;
        grid.sync();
        total = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            total += sums[b];
        grid.sync();
    }
    if (threadIdx.x == 0)
        totals[blockIdx.x] = total;
}

// Each thread writes before the barrier, and reads the element of the opposite thread of the grid after it.
extern "C" __global__ void grid_split(unsigned *squares, unsigned *out)
{
    cg::grid_group grid = cg::this_grid();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned last = gridDim.x * blockDim.x - 1;
    squares[i] = i * i;
    auto token = grid.barrier_arrive();
    unsigned own = 3 * i;
    grid.barrier_wait(static_cast<decltype(token) &&>(token));
    out[i] = squares[last - i] + own;
}
