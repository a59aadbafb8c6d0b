// Scale and zero point for quantizing a tensor to unsigned bytes, from its range, which is extended to include 0:
//
//     scale = (highest - lowest) / 255        zero point = saturate(round(-lowest / scale))
//
// A tensor of zeros has the scale 1. There is one work group: each work item reads every LOCAL_0-th element, then their
// extremes are compared in a tree. If any element is NaN, it is the highest and the lowest number.

static inline float lower(const float a, const float b) { return a != a || a <= b ? a : b; }
static inline float higher(const float a, const float b) { return a != a || a >= b ? a : b; }

KERNEL void quantization_range(OUTPUT(S_TYPE, scale), OUTPUT(uchar, zero_point), INPUT(X_TYPE, x), const int count) {
    const int item = get_local_id(0);
    __local float lowest[LOCAL_0], highest[LOCAL_0];
    float low = 0, high = 0;
    for (int i = item; i < count; i += LOCAL_0) {
        const float value = LOAD_X(POINTER(x), i);
        low = lower(low, value);
        high = higher(high, value);
    }
    lowest[item] = low;
    highest[item] = high;
    for (int half_way = LOCAL_0 / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) {
            lowest[item] = lower(lowest[item], lowest[item + half_way]);
            highest[item] = higher(highest[item], highest[item + half_way]);
        }
    }
    if (item == 0) {
        const float range = (highest[0] - lowest[0]) / 255;
        const float step = range == 0 ? 1 : range;
        const float zero = rint(-lowest[0] / step);
        STORE_S(POINTER(scale), 0, step);
        *POINTER(zero_point) = zero != zero ? 0 : (uchar)clamp(zero, 0.0f, 255.0f);
    }
}
