// Convolutions as matrix products [output channels, depth] x [depth, positions]; the input is read in place.
//
// The depth counts pairs of an input channel and a tap of the filter. Positions count the elements of an image's rows
// one after another, so a tap reads neighbouring elements for neighbouring positions, at a fixed offset from the
// position. The table tap_offsets lists this offset for each tap; without TAP_OFFSETS there is one tap, at offset 0.
// Images have been padded so that they contain all taps (convolution_phases.cl). Their rows are then wider than the
// rows of the result (WIDE); positions between two rows are computed but not stored.
//
// One work item computes ROWS output channels of VECTORS vectors of WIDTH positions, in registers: for each step along
// the depth, ROWS + VECTORS loads for ROWS * VECTORS multiplications. The weights of its channels are packed in the
// order in which it reads them. Dimension 0 counts positions: the vectors of a work group are interleaved, so that
// neighbouring work items read neighbouring memory. Dimension 1 counts blocks of output channels, one group of the
// convolution after another: the weights of a block stay in the cache for all positions. Dimension 2 counts planes:
// images and, in each, the depths of the result; with W_PLANE each plane has separate weights.
//
// WEIGHTS_IMAGE: the weights are read as an image over their buffer, four at a time; ROWS is then a multiple of 4.
//
// The last vector of an image ends at the last position. If it overlaps the vector before it, both compute the same.

#ifdef WEIGHTS_IMAGE
#define TEXEL 4
#define WEIGHT(i) (column[i])
#else
#define TEXEL 1
#define WEIGHT(i) LOAD_W(weights, i)
#endif

KERNEL void convolution_gemm(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x),
#ifdef WEIGHTS_IMAGE
                             __read_only image1d_buffer_t w,
#else
                             INPUT(W_TYPE, w),
#endif
#ifdef HAS_BIAS
                             INPUT(B_TYPE, bias),
#endif
#ifdef TAP_OFFSETS
                             INPUT(int, tap_offsets), const int taps,
#endif
#ifdef W_PLANE
                             const int w_plane,
#endif
                             const int positions, const int channels, const int groups, const int group_outputs,
                             const int x_channel, const int x_image, const int x_depth, const int depths,
                             const int x_row, const int y_width, const int y_channel, const int y_depth,
                             const int y_row, const int y_column, const int y_first EPILOGUE_PARAMETERS) {
    const int blocks = (group_outputs + ROWS - 1) / ROWS;
    const int panel = get_global_id(1);
    const int plane = get_global_id(2);
    const int group = panel / blocks;
    const int first = (panel - group * blocks) * ROWS;
    const int image = plane / depths;
    const int depth = plane - image * depths;
    const int start = ((int)get_group_id(0) * LOCAL_0 * VECTORS + (int)get_local_id(0)) * WIDTH;
    if (group >= groups || start >= positions) return;

    int at[VECTORS];
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) {
        const int next = start + j * LOCAL_0 * WIDTH;
        at[j] = next < positions - WIDTH ? next : positions - WIDTH;
    }
    SUM_VECTOR sums[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#ifdef HAS_BIAS
        const int channel = first + i < group_outputs ? first + i : first;
        const SUM begin = LOAD_B(POINTER(bias), group * group_outputs + channel);
#else
        const SUM begin = 0;
#endif
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) sums[i][j] = begin;
    }

    __global const X_TYPE* from = POINTER(x) + image * x_image + depth * x_depth + group * channels * x_channel;
#ifdef WEIGHTS_IMAGE
    int weights = 0;
#else
    __global const W_TYPE* weights = POINTER(w);
#endif
#ifdef W_PLANE
    weights += plane * (w_plane / TEXEL);
#endif
#ifdef TAP_OFFSETS
    weights += panel * channels * taps * (ROWS / TEXEL);
#else
    weights += panel * channels * (ROWS / TEXEL);
#endif
    for (int channel = 0; channel < channels; ++channel, from += x_channel) {
#ifdef TAP_OFFSETS
        for (int tap = 0; tap < taps; ++tap, weights += ROWS / TEXEL) {
            __global const X_TYPE* under = from + POINTER(tap_offsets)[tap];
#else
        for (int tap = 0; tap < 1; ++tap, weights += ROWS / TEXEL) {
            __global const X_TYPE* under = from;
#endif
            SUM_VECTOR neighbours[VECTORS];
#pragma unroll
            for (int j = 0; j < VECTORS; ++j) neighbours[j] = LOAD_X_VECTOR(under, at[j]);
#ifdef WEIGHTS_IMAGE
            SUM column[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i += TEXEL) {
                const float4 texel = read_imagef(w, weights + i / TEXEL);
                column[i] = texel.x, column[i + 1] = texel.y, column[i + 2] = texel.z, column[i + 3] = texel.w;
            }
#endif
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const SUM weight = WEIGHT(i);
#pragma unroll
                for (int j = 0; j < VECTORS; ++j) sums[i][j] += neighbours[j] * weight;
            }
        }
    }

#ifdef WIDE
    // The offset of each position in a channel of the result; -1 between two rows.
    int y_offsets[VECTORS][WIDTH];
    bool is_run[VECTORS];
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) {
        int row = at[j] / x_row, column = at[j] - row * x_row;
        is_run[j] = y_column == 1 && column + WIDTH <= y_width;
#pragma unroll
        for (int lane = 0; lane < WIDTH; ++lane) {
            y_offsets[j][lane] = column < y_width ? y_first + depth * y_depth + row * y_row + column * y_column : -1;
            if (++column == x_row) column = 0, ++row;
        }
    }
#endif
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        if (first + i < group_outputs) {
            const int row = (image * groups + group) * group_outputs + first + i;
            __global Y_TYPE* result = POINTER(y) + row * y_channel;
#pragma unroll
            for (int j = 0; j < VECTORS; ++j) {
                union {
                    SUM_VECTOR vector;
                    SUM lanes[WIDTH];
                } sum;
                sum.vector = sums[i][j];
#ifdef WIDE
                const int begin = y_offsets[j][0];
                if (!is_run[j]) {
                    for (int lane = 0; lane < WIDTH; ++lane) {
                        const int index = y_offsets[j][lane];
                        if (index >= 0) STORE_Y(result, index, EPILOGUE(sum.lanes[lane], row, index));
                    }
                    continue;
                }
#else
                const int begin = y_first + depth * y_depth + at[j];
#endif
                for (int lane = 0; lane < WIDTH; ++lane) {
                    STORE_Y(result, begin + lane, EPILOGUE(sum.lanes[lane], row, begin + lane));
                }
            }
        }
    }
}
