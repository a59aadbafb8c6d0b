// Local response normalisation of AlexNet: x / (bias + alpha / SIZE * sum(x * x)) ** beta, the sum over SIZE channels
// of which (SIZE - 1) / 2 are before the own one.
//
// One work item computes one element: dimension 0 counts the pixels of a channel, dimension 1 channels, dimension 2
// images. The window is short, so sums are made anew for each element.

// AlexNet's own power needs no logarithm.
#ifdef THREE_QUARTERS
#define POWER(x) (sqrt(x) * sqrt(sqrt(x)))
#else
#define POWER(x) pow(x, beta)
#endif

KERNEL void response_normalization(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int channels, const int pixels,
                                   const ACC alpha, const ACC beta, const ACC bias EPILOGUE_PARAMETERS) {
    const int pixel = get_global_id(0), channel = get_global_id(1), image = get_global_id(2);
    if (pixel >= pixels) return;
    const int before = (SIZE - 1) / 2;
    __global const X_TYPE* from = POINTER(x) + image * channels * pixels + pixel;
    ACC sum = 0;
    for (int i = max(0, channel - before); i < min(channels, channel - before + SIZE); ++i) {
        const ACC value = LOAD_X(from, i * pixels);
        sum += value * value;
    }
    const ACC own = LOAD_X(from, channel * pixels);
    const int row = image * channels + channel;
    STORE_Y(POINTER(y), row * pixels + pixel, EPILOGUE(own / POWER(bias + alpha * sum), row, pixel));
}
