// The first step of Winograd's filtering F(M x M, 3 x 3): each tile of the image becomes POINTS x POINTS numbers.
//
// A tile has (M + 2) x (M + 2) elements and begins M elements after its neighbour; tiles overlap by two elements. The
// result is [POINTS * POINTS, channels, tiles], the tiles of all images in order: for each point the right operand of a
// product.
//
// A work item transforms WIDTH neighbouring tiles of a row in one vector; the last vector of a row ends with the row
// and may overlap the one before it. Dimension 0 counts vectors of tiles, dimension 1 channels, dimension 2 images.
// After A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.

#define POINTS (M + 2)

// Multiply the matrix of the transform and a column of the tile, from[0], from[step], ..., in place.
static inline void transform(SUM_VECTOR* from, const int step) {
#if M == 2
    const SUM_VECTOR a = from[0], b = from[step], c = from[2 * step], d = from[3 * step];
    from[0] = a - c;
    from[step] = b + c;
    from[2 * step] = c - b;
    from[3 * step] = b - d;
#else
    const SUM_VECTOR a = from[0], b = from[step], c = from[2 * step];
    const SUM_VECTOR d = from[3 * step], e = from[4 * step], f = from[5 * step];
    const SUM_VECTOR p = e - c * 4, q = d - b * 4, r = e - c, s = (d - b) * 2;
    from[0] = a * 4 - c * 5 + e;
    from[step] = p + q;
    from[2 * step] = p - q;
    from[3 * step] = r + s;
    from[4 * step] = r - s;
    from[5 * step] = b * 4 - d * 5 + f;
#endif
}

KERNEL void winograd_input(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int channels, const int rows, const int columns,
                           const int x_image, const int x_channel, const int x_row, const int tiles) {
    const int vectors = (columns + WIDTH - 1) / WIDTH;
    const int item = get_global_id(0);
    const int channel = get_global_id(1);
    const int image = get_global_id(2);
    const int row = item / vectors;
    const int next = (item - row * vectors) * WIDTH;
    const int column = next < columns - WIDTH ? next : columns - WIDTH;
    if (row >= rows || channel >= channels) return;
    __global const X_TYPE* from = POINTER(x) + image * x_image + channel * x_channel + row * M * x_row + column * M;
    SUM_VECTOR tile[POINTS * POINTS];
#pragma unroll
    for (int i = 0; i < POINTS; ++i) {
#pragma unroll
        for (int j = 0; j < POINTS; ++j) tile[i * POINTS + j] = LOAD_TILES(from, i * x_row + j);
    }
#pragma unroll
    for (int j = 0; j < POINTS; ++j) transform(tile + j, POINTS);
#pragma unroll
    for (int i = 0; i < POINTS; ++i) transform(tile + i * POINTS, 1);
    __global Y_TYPE* result = POINTER(y) + channel * tiles + (image * rows + row) * columns + column;
#pragma unroll
    for (int point = 0; point < POINTS * POINTS; ++point) {
        STORE_TILES(tile[point], result + point * channels * tiles);
    }
}
