// Depthwise convolutions: every output channel reads one input channel, so only neighbouring outputs share inputs.
//
// Images have been padded and split into phases (convolution_phases.cl): for every stride a tap reads neighbouring
// elements for neighbouring outputs. The table tap_offsets lists for each of TAPS taps its offset from the output's
// position.
//
// A work group computes `band` rows of one output channel of one image. A work item computes a column of vectors of
// WIDTH outputs; the last vector of a row ends with the row and may overlap the one before it.
// Dimension 0 counts columns and, by group, bands; dimension 1 output channels, dimension 2 images.

KERNEL void convolution_depthwise(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(W_TYPE, w),
#ifdef HAS_BIAS
                                  INPUT(B_TYPE, bias),
#endif
                                  INPUT(int, tap_offsets), const int channels, const int outputs_of_channel,
                                  const int x_image, const int x_channel, const int x_row, const int height,
                                  const int width, const int band EPILOGUE_PARAMETERS) {
    const int channel = get_global_id(1);
    const int image = get_global_id(2);
    if (channel >= channels) return;
    const int first = (int)get_group_id(0) * band;
    const int last = first + band < height ? first + band : height;
    const int plane = image * channels + channel;
    __global const X_TYPE* from = POINTER(x) + image * x_image + channel / outputs_of_channel * x_channel;
    __global Y_TYPE* result = POINTER(y) + plane * height * width;
    SUM weights[TAPS];
    int offsets[TAPS];
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
        weights[tap] = LOAD_W(POINTER(w), channel * TAPS + tap);
        offsets[tap] = POINTER(tap_offsets)[tap];
    }
#ifdef HAS_BIAS
    const SUM begin = LOAD_B(POINTER(bias), channel);
#else
    const SUM begin = 0;
#endif
    for (int next = (int)get_local_id(0) * WIDTH; next < width; next += LOCAL_0 * WIDTH) {
        const int column = next < width - WIDTH ? next : width - WIDTH;
        for (int row = first; row < last; ++row) {
            __global const X_TYPE* under = from + row * x_row;
            union {
                SUM_VECTOR vector;
                SUM lanes[WIDTH];
            } sum;
            SUM_VECTOR total = begin;
#pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) total += LOAD_X_VECTOR(under, offsets[tap] + column) * weights[tap];
            sum.vector = total;
            const int index = row * width + column;
            for (int lane = 0; lane < WIDTH; ++lane) {
                STORE_Y(result, index + lane, EPILOGUE(sum.lanes[lane], plane, index + lane));
            }
        }
    }
}
