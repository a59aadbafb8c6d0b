// Local response normalization of AlexNet: x / (bias + alpha / SIZE * sum(x * x)) ** beta, with the sum over SIZE
// channels that begin (SIZE - 1) / 2 channels before the element's channel.
//
// One work item computes one element: dimension 0 counts the pixels of a channel, dimension 1 channels, dimension 2
// images. The window is short, so each element computes its own sum.

// The power 0.75 of AlexNet needs no logarithm.
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
