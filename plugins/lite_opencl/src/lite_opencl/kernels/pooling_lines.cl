// Pools over windows as in pooling.cl, for processors: one work item computes a line of the result, 8 neighbouring
// elements at once as a vector. Dimension 0 counts lines, of one plane after another.
//
// A tap of all 8 windows is one load, or two loads if windows are 2 apart. In that case, unless there are many taps,
// the lines under the windows are joined as whole vectors, which are split into taps in the end. If a load would leave
// the line, elements are loaded one by one, and are START outside of the line. The last vector of a line ends with the
// line and may overlap the one before it.

#define LINE 8
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
typedef PASTE(ACC, 8) numbers;
typedef numbers unaligned_numbers __attribute__((aligned(sizeof(ACC))));
#define WHOLE(pointer) (*(__global const unaligned_numbers*)(pointer))
#define LANES_OF(vector) ((ACC*)&(vector))

// NOTE: not max and min, which PoCL calls as functions.
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define TAP(position, start, axis) (((position) - (start) + DILATION_##axis - 1) / DILATION_##axis)
#define TAPS(first, end, start, low, high, axis)        \
    const int first = MOST(0, TAP(low, start, axis));   \
    const int end = MOST(first, LEAST(TAP(high, start, axis), KERNEL_##axis))

#if defined(MAXIMUM)
#define START LOWEST
#define ADDED(result, x) ((((result) != (result)) | ((result) >= (x))) ? (result) : (x))
#define JOINED ADDED
#else
#define START 0
#define JOINED(a, b) ((a) + (b))
#if defined(AVERAGE)
#define ADDED(sum, x) ((sum) + (x))
#elif POWER == 1
#define ADDED(sum, x) ((sum) + fabs(x))
#elif POWER == 2
#define ADDED(sum, x) ((sum) + (x) * (x))
#define ROOT(sum) sqrt(sum)
#else
#define ADDED(sum, x) ((sum) + pow(fabs(x), (numbers)(ACC)POWER))
#define ROOT(sum) pow(sum, (numbers)((ACC)1 / (ACC)POWER))
#endif
#endif

// For windows that are 2 apart: the number of pairs of taps.
#if STRIDE_W == 2 && DILATION_W == 1 && KERNEL_W <= 4
#define PAIRS ((KERNEL_W + 1) / 2)
#endif

// Load elements of a line from `column` on, STRIDE_W apart.
static inline numbers taken(__global const ACC* line, const int column, const int width) {
    const int reach = STRIDE_W == 1 ? LINE : 2 * LINE;
    if (STRIDE_W <= 2 && column >= 0 && column + reach <= width) {
        if (STRIDE_W == 1) return WHOLE(line + column);
        return (numbers)(WHOLE(line + column).even, WHOLE(line + column + LINE).even);
    }
    numbers result;
    for (int u = 0; u < LINE; ++u) {
        const int index = column + u * STRIDE_W;
        LANES_OF(result)[u] = index >= 0 && index < width ? line[index] : (ACC)START;
    }
    return result;
}

KERNEL void pool_lines(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int planes, const int depth, const int height,
                       const int width, const int y_depth, const int y_height, const int y_width, const int front,
                       const int top, const int left, const int back, const int bottom, const int right
                       EPILOGUE_PARAMETERS) {
    const int line = get_global_id(0);
    const int plane = line / (y_depth * y_height);
    const int start_z = line / y_height % y_depth * STRIDE_D - front;
    const int start_y = line % y_height * STRIDE_H - top;
    TAPS(first_z, end_z, start_z, 0, depth, D);
    TAPS(first_y, end_y, start_y, 0, height, H);
    __global const X_TYPE* image = POINTER(x) + plane * depth * height * width;
#ifdef AVERAGE
#ifdef COUNT_PADDING
    // Taps of the last window beyond the padding are not counted.
    TAPS(from_z, to_z, start_z, -front, depth + back, D);
    TAPS(from_y, to_y, start_y, -top, height + bottom, H);
    const int lines = (to_z - from_z) * (to_y - from_y), low = -left, high = width + right;
#else
    const int lines = (end_z - first_z) * (end_y - first_y), low = 0, high = width;
#endif
#endif
#ifdef PAIRS
    // Elements from the beginning of the last line under the windows to the end of the tensor.
    const int last_row = (start_z + (end_z - 1) * DILATION_D) * height + start_y + (end_y - 1) * DILATION_H;
    const int left_over = (planes - plane) * depth * height * width - last_row * width;
#endif
    for (int next = 0; next < y_width; next += LINE) {
        const int column = next + LINE <= y_width ? next : y_width - LINE;
        const int start_x = column * STRIDE_W - left;
        numbers result = (numbers)(ACC)START;
#ifdef PAIRS
        const int last = start_x + (LINE - 1) * STRIDE_W + KERNEL_W - 1;
        if (start_x >= 0 && last < width && start_x + 2 * (PAIRS - 1 + LINE) <= left_over) {
            numbers low[PAIRS], high[PAIRS];
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) low[p] = high[p] = (numbers)(ACC)START;
            for (int i = first_z; i < end_z; ++i) {
                for (int j = first_y; j < end_y; ++j) {
                    const int row = (start_z + i * DILATION_D) * height + start_y + j * DILATION_H;
                    __global const X_TYPE* from = image + row * width + start_x;
#pragma unroll
                    for (int p = 0; p < PAIRS; ++p) {
                        const numbers before = WHOLE(from + 2 * p), behind = WHOLE(from + 2 * p + LINE);
                        low[p] = ADDED(low[p], before);
                        high[p] = ADDED(high[p], behind);
                    }
                }
            }
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) {
                const numbers even = (numbers)(low[p].even, high[p].even), odd = (numbers)(low[p].odd, high[p].odd);
                result = JOINED(result, even);
                if (2 * p + 1 < KERNEL_W) result = JOINED(result, odd);
            }
        } else
#endif
        for (int i = first_z; i < end_z; ++i) {
            for (int j = first_y; j < end_y; ++j) {
                const int row = (start_z + i * DILATION_D) * height + start_y + j * DILATION_H;
                for (int k = 0; k < KERNEL_W; ++k) {
                    const numbers value = taken(image + row * width, start_x + k * DILATION_W, width);
                    result = ADDED(result, value);
                }
            }
        }
#ifdef ROOT
        result = ROOT(result);
#endif
#ifdef AVERAGE
        const int last_x = start_x + (LINE - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W;
        if (start_x >= low && last_x < high) {
            result /= (ACC)(lines * KERNEL_W);
        } else {
            for (int u = 0; u < LINE; ++u) {
                TAPS(from_x, to_x, start_x + u * STRIDE_W, low, high, W);
                LANES_OF(result)[u] /= (ACC)(lines * (to_x - from_x));
            }
        }
#endif
        const int pixel = line % (y_depth * y_height) * y_width + column;
        __global Y_TYPE* to = POINTER(y) + line * y_width + column;
        for (int u = 0; u < LINE; ++u) STORE_Y(to, u, EPILOGUE(LANES_OF(result)[u], plane, pixel + u));
    }
}
