// Pools over the windows of images [batch, channels, depth, height, width]; missing spatial dimensions have size 1.
//
// One work item computes one element: dimension 0 counts the pixels of an image of the result, so that neighbours read
// neighbouring windows; dimension 1 counts planes: the channels of all images. The range of a window's taps inside the
// image is computed before the loops over them, which then need no conditions. Constant window sizes would gain little,
// so one program serves all windows.
//
// MAXIMUM with or without INDICES, AVERAGE, or the POWER-th root of the sum of POWER-th powers. ACC is the type that is
// computed in.

// The range of taps from the first one at or after LOW to the first one at or after HIGH.
#define TAPS(first, end, start, low, high, axis)                                         \
    const int first = max(0, ((low) - (start) + dilation_##axis - 1) / dilation_##axis); \
    const int end = clamp(((high) - (start) + dilation_##axis - 1) / dilation_##axis, first, kernel_##axis)

#define LARGER(a, b) ((a) != (a) || (a) >= (b) ? (a) : (b))

#if defined(MAXIMUM)
#define START LOWEST
#elif defined(AVERAGE)
#define START 0
#define ADDED(sum, x) ((sum) + (x))
#else
#define START 0
#if POWER == 1
#define ADDED(sum, x) ((sum) + fabs(x))
#define ROOT(sum) (sum)
#elif POWER == 2
#define ADDED(sum, x) ((sum) + (x) * (x))
#define ROOT(sum) sqrt(sum)
#else
#define ADDED(sum, x) ((sum) + pow(fabs(x), (ACC)POWER))
#define ROOT(sum) pow(sum, (ACC)1 / (ACC)POWER)
#endif
#endif

KERNEL void pool(OUTPUT(Y_TYPE, y),
#ifdef INDICES
                 OUTPUT(long, indices),
#endif
                 INPUT(X_TYPE, x), const int planes, const int depth, const int height, const int width,
                 const int y_depth, const int y_height, const int y_width, const int front, const int top,
                 const int left, const int back, const int bottom, const int right, const int kernel_z,
                 const int kernel_y, const int kernel_x, const int stride_z, const int stride_y, const int stride_x,
                 const int dilation_z, const int dilation_y, const int dilation_x EPILOGUE_PARAMETERS) {
    const int pixel = get_global_id(0), plane = get_global_id(1);
    if (pixel >= y_depth * y_height * y_width) return;
    const int start_z = pixel / (y_height * y_width) * stride_z - front;
    const int start_y = pixel / y_width % y_height * stride_y - top;
    const int start_x = pixel % y_width * stride_x - left;
    TAPS(first_z, end_z, start_z, 0, depth, z);
    TAPS(first_y, end_y, start_y, 0, height, y);
    TAPS(first_x, end_x, start_x, 0, width, x);
    __global const X_TYPE* image = POINTER(x) + plane * depth * height * width;
    ACC result = START;
#ifdef INDICES
    int found = -1;
#endif
    for (int i = first_z; i < end_z; ++i) {
        for (int j = first_y; j < end_y; ++j) {
            const int line = ((start_z + i * dilation_z) * height + start_y + j * dilation_y) * width + start_x;
            for (int k = first_x; k < end_x; ++k) {
                const ACC value = LOAD_X(image, line + k * dilation_x);
#if defined(INDICES)
                // The first of equal elements, the first NaN, and the first element even if it is -infinity, which is
                // not > START.
                const bool is_better = value > result || found < 0 || (value != value && result == result);
                result = is_better ? value : result;
                found = is_better ? line + k * dilation_x : found;
#elif defined(MAXIMUM)
                result = LARGER(result, value);
#else
                result = ADDED(result, value);
#endif
            }
        }
    }
#ifdef AVERAGE
#ifdef COUNT_PADDING
    // Taps of the last window beyond the padding are not counted.
    TAPS(from_z, to_z, start_z, -front, depth + back, z);
    TAPS(from_y, to_y, start_y, -top, height + bottom, y);
    TAPS(from_x, to_x, start_x, -left, width + right, x);
    result /= (ACC)((to_z - from_z) * (to_y - from_y) * (to_x - from_x));
#else
    result /= (ACC)((end_z - first_z) * (end_y - first_y) * (end_x - first_x));
#endif
#endif
#ifdef ROOT
    result = ROOT(result);
#endif
    const int index = plane * y_depth * y_height * y_width + pixel;
    STORE_Y(POINTER(y), index, EPILOGUE(result, plane, pixel));
#ifdef INDICES
#ifdef COLUMN_MAJOR
    const int z = found / (height * width), row = found / width % height, column = found % width;
    const int inside = (column * height + row) * depth + z;
#else
    const int inside = found;
#endif
    POINTER(indices)[index] = found < 0 ? -1 : (long)plane * depth * height * width + inside;
#endif
}
