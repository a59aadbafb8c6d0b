// Pads images for a convolution and splits them into phases by the strides.
//
// With a stride of S, windows begin at every S-th row and column. The padded image is split into S * S phases, each
// with the rows and columns of one remainder by S: in a phase, neighbouring windows begin at neighbouring elements for
// every stride. The table `phases` lists the remainders (row, column) that the filter uses. The result is [image and
// channel, depth, phase, height, width].
//
// Elements are moved as bits. A work group writes the plane of one phase, its work items neighbouring columns;
// dimension 1 counts planes. EVEN_VECTORS: a single work item loads every second element, of four bytes, by vectors.

KERNEL void convolution_phases(OUTPUT(X_TYPE, y), INPUT(X_TYPE, x), INPUT(int, phases), const int planes,
                               const int phase_count, const int depth, const int height, const int width,
                               const int y_depth, const int y_height, const int y_width, const int pad_front,
                               const int pad_top, const int pad_left, const int stride_row) {
    const int plane = get_global_id(1);
    if (plane >= planes) return;
    const int phase = plane % phase_count;
    const int from_z = plane / phase_count % y_depth - pad_front;
    const int first_y = POINTER(phases)[2 * phase] - pad_top;
    const int first_x = POINTER(phases)[2 * phase + 1] - pad_left;
    // Columns from `begin` to `end` are inside the image.
    int begin = first_x < 0 ? (STRIDE - 1 - first_x) / STRIDE : 0;
    int end = width > first_x ? (width - first_x + STRIDE - 1) / STRIDE : 0;
    begin = begin < y_width ? begin : y_width;
    end = end < y_width ? end : y_width;
    __global const X_TYPE* image = POINTER(x) + (plane / phase_count / y_depth * depth + from_z) * height * width;
    __global X_TYPE* result = POINTER(y) + plane * y_height * y_width;
    for (int row = 0; row < y_height; ++row, result += y_width) {
        const int from_y = row * stride_row + first_y;
        const bool is_inside = from_z >= 0 && from_z < depth && from_y >= 0 && from_y < height && begin < end;
        const int inside_begin = is_inside ? begin : y_width;
        const int inside_end = is_inside ? end : y_width;
        const int from = from_y * width + first_x;
        for (int column = get_local_id(0); column < inside_begin; column += LOCAL_0) result[column] = 0;
        int next = inside_begin + (int)get_local_id(0);
#ifdef EVEN_VECTORS
        for (; next + 8 < inside_end; next += 8) {
            const uint8 left = LOAD_VECTOR(uint, 8, image + from + next * 2);
            const uint8 right = LOAD_VECTOR(uint, 8, image + from + next * 2 + 8);
            STORE_VECTOR(uint, 8, (uint8)(left.even, right.even), result + next);
        }
#endif
        for (; next < inside_end; next += LOCAL_0) result[next] = image[from + next * STRIDE];
        for (int column = inside_end + (int)get_local_id(0); column < y_width; column += LOCAL_0) {
            result[column] = 0;
        }
    }
}
