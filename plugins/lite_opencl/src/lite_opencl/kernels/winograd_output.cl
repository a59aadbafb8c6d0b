// The last step of Winograd's filtering F(M x M, 3 x 3): the products of each tile become M x M results.
//
// Products are [POINTS * POINTS, output channels, tiles], the tiles of all images in order. A work item transforms
// WIDTH neighbouring tiles of a row, and stores M rows of WIDTH * M results inside the image. Dimension 0 counts
// vectors of tiles; the last vector of a row ends with the row and may overlap the one before it. Dimension 1 counts
// output channels, dimension 2 images. After A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks",
// 2015.

#define POINTS (M + 2)

// Multiply the matrix of the transform and from[0], from[step], ...; the M results are `to_step` apart.
static inline void transform(const SUM_VECTOR* from, const int step, SUM_VECTOR* to, const int to_step) {
    const SUM_VECTOR a = from[0], b = from[step], c = from[2 * step], d = from[3 * step];
#if M == 2
    to[0] = a + b + c;
    to[to_step] = b - c - d;
#else
    const SUM_VECTOR e = from[4 * step], f = from[5 * step];
    const SUM_VECTOR p = b + c, q = b - c, r = d + e, s = d - e;
    to[0] = a + p + r;
    to[to_step] = q + s * 2;
    to[2 * to_step] = p + r * 4;
    to[3 * to_step] = q + s * 8 + f;
#endif
}

KERNEL void winograd_output(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x),
#ifdef HAS_BIAS
                            INPUT(B_TYPE, bias),
#endif
                            const int channels, const int rows, const int columns, const int tiles, const int height,
                            const int width EPILOGUE_PARAMETERS) {
    const int vectors = (columns + WIDTH - 1) / WIDTH;
    const int item = get_global_id(0);
    const int channel = get_global_id(1);
    const int image = get_global_id(2);
    const int row = item / vectors;
    const int next = (item - row * vectors) * WIDTH;
    const int column = next < columns - WIDTH ? next : columns - WIDTH;
    if (row >= rows || channel >= channels) return;
    __global const X_TYPE* from = POINTER(x) + channel * tiles + (image * rows + row) * columns + column;
    SUM_VECTOR tile[POINTS * POINTS], halfway[M * POINTS], results[M * M];
#pragma unroll
    for (int point = 0; point < POINTS * POINTS; ++point) {
        tile[point] = LOAD_X_VECTOR(from, point * channels * tiles);
    }
#pragma unroll
    for (int j = 0; j < POINTS; ++j) transform(tile + j, POINTS, halfway + j, POINTS);
#pragma unroll
    for (int i = 0; i < M; ++i) transform(halfway + i * POINTS, 1, results + i * M, 1);
#ifdef HAS_BIAS
    const SUM begin = LOAD_B(POINTER(bias), channel);
#else
    const SUM begin = 0;
#endif
    const int plane = image * channels + channel;
    __global Y_TYPE* result = POINTER(y) + plane * height * width;
    const int remaining = width - column * M;
    const int count = remaining < WIDTH * M ? remaining : WIDTH * M;
#pragma unroll
    for (int i = 0; i < M; ++i) {
        // Results of neighbouring tiles in the order in which they are stored.
        SUM line[WIDTH * M];
#pragma unroll
        for (int j = 0; j < M; ++j) {
            union {
                SUM_VECTOR vector;
                SUM lanes[WIDTH];
            } result_of;
            result_of.vector = results[i * M + j];
#pragma unroll
            for (int lane = 0; lane < WIDTH; ++lane) line[lane * M + j] = result_of.lanes[lane] + begin;
        }
        if (row * M + i < height) {
            const int first = (row * M + i) * width + column * M;
            for (int k = 0; k < count; ++k) STORE_Y(result, first + k, EPILOGUE(line[k], plane, first + k));
        }
    }
}
