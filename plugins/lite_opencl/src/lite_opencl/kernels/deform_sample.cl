// Elements of images x [images, channels, height, width] at shifted positions, for the windows of a convolution: y
// [images, channels * taps, rows * columns]. The shifts are offset [images, offset groups, taps, 2, rows * columns]; with
// MASKED, elements are multiplied by mask [images, offset groups, taps, rows * columns].
//
// One work item computes one element: dimension 0 counts windows, dimension 1 channels and taps, dimension 2 images.

#define TAPS (TAPS_Y * TAPS_X)

KERNEL void deform_sample(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(O_TYPE, offset),
#ifdef MASKED
                          INPUT(O_TYPE, mask),
#endif
                          const int images, const int channels, const int height, const int width, const int rows,
                          const int columns, const int groups, const int stride_y, const int stride_x,
                          const int dilation_y, const int dilation_x, const int begin_y, const int begin_x) {
    const int window = get_global_id(0);
    const int line = get_global_id(1);
    const int image = get_global_id(2);
    const int windows = rows * columns;
    if (window >= windows || line >= channels * TAPS || image >= images) return;
    const int channel = line / TAPS, tap = line % TAPS;
    const int shifted = (image * groups + channel / (channels / groups)) * TAPS + tap;
    const int regular_y = window / columns * stride_y + tap / TAPS_X * dilation_y - begin_y;
    const int regular_x = window % columns * stride_x + tap % TAPS_X * dilation_x - begin_x;
    const O_COMPUTE at_y = regular_y + LOAD_O(POINTER(offset), 2 * shifted * windows + window);
    const O_COMPUTE at_x = regular_x + LOAD_O(POINTER(offset), (2 * shifted + 1) * windows + window);
    __global const X_TYPE* plane = POINTER(x) + (image * channels + channel) * height * width;
    X_COMPUTE sum = 0;
    for (int corner = 0; corner < 4; ++corner) {
        const O_COMPUTE near_y = floor(at_y) + corner / 2, near_x = floor(at_x) + corner % 2;
        if (near_y >= 0 && near_y < height && near_x >= 0 && near_x < width) {
            const O_COMPUTE weight = (1 - fabs(at_y - near_y)) * (1 - fabs(at_x - near_x));
            sum += LOAD_X(plane, (int)near_y * width + (int)near_x) * (X_COMPUTE)weight;
        }
    }
#ifdef MASKED
    sum *= LOAD_O(POINTER(mask), shifted * windows + window);
#endif
    STORE_Y(POINTER(y), (image * channels * TAPS + line) * windows + window, sum);
}
