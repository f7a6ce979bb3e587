// Transposes a matrix whose sizes are multiples of 4. Grid: ceil(w/32), ceil(h/32). Block: 32, 8.
// A thread loads and stores four floats at once, so a warp loads four rows of 32 floats with one instruction.
extern "C" __global__ void transpose_vec(const float *in, float *out, int w, int h)
{
    __shared__ float tile[32][33];
    unsigned t = threadIdx.y * 32 + threadIdx.x;
    int row = t / 8, col = t % 8 * 4;
    int x = blockIdx.x * 32 + col, y = blockIdx.y * 32 + row;
    if (x < w && y < h) {
        float4 v = *(const float4 *)(in + y * w + x);
        tile[row][col] = v.x;
        tile[row][col + 1] = v.y;
        tile[row][col + 2] = v.z;
        tile[row][col + 3] = v.w;
    }
    __syncthreads();
    x = blockIdx.y * 32 + col;
    y = blockIdx.x * 32 + row;
    if (x < h && y < w) {
        float4 v = {tile[col][row], tile[col + 1][row], tile[col + 2][row], tile[col + 3][row]};
        *(float4 *)(out + y * h + x) = v;
    }
}
