// Regions of images x [images, channels, height, width] pooled to one size: y [regions, channels, rows, columns]. A
// region is (x1, y1, x2, y2); SHIFT moves regions, and without it they are at least 1 x 1.
//
// One work item computes one bin of BLOCK channels, which share the positions of the samples: dimension 0 counts bins,
// dimension 1 blocks of channels, dimension 2 regions.
// With MAXIMUM the result is the largest product of an element and its weight, otherwise the mean of the samples.

// Fused multiplication and addition would make the errors of sums wrong.
#pragma OPENCL FP_CONTRACT OFF

// A number as the unevaluated sum of a rounded one and its error: positions need more digits than float has.
typedef struct {
    R_COMPUTE value, error;
} exact;

// The position of sample number ``number`` of ``count`` samples on a length: start + length * (number + 1/2) / count.
static inline exact position(const exact start, const R_COMPUTE length, const int number, const int count) {
    const R_COMPUTE part = 2 * number + 1, parts = 2 * count;
    const R_COMPUTE product = length * part, quotient = product / parts;
    const R_COMPUTE rest = fma(length, part, -product) + fma(-quotient, parts, product);
    const R_COMPUTE sum = start.value + quotient, back = sum - start.value;
    const R_COMPUTE lost = (start.value - (sum - back)) + (quotient - back);
    return (exact){sum, lost + rest / parts + start.error};
}

// The two elements around a position along an axis, and the weight of the second; false for a position outside.
static inline bool around(const exact at, const int size, int* low, int* high, R_COMPUTE* fraction) {
    if (!(at.value >= -1 && at.value <= size)) return false;
    const bool is_between = at.value >= 0 && at.value <= size - 1;
    const R_COMPUTE within = clamp(at.value, (R_COMPUTE)0, (R_COMPUTE)(size - 1));
    *low = (int)within;
    *high = min(*low + 1, size - 1);
    *fraction = within - *low + (is_between ? at.error : 0);
    return true;
}

#ifdef SHIFT
#define MOVED ((R_COMPUTE)0.5f)
#else
#define MOVED ((R_COMPUTE)0)
#endif
#ifdef MAXIMUM
#define START (-INFINITY)
// The larger of two numbers; NaN if the second is NaN, and the first never is otherwise.
#define COMBINE(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define RESULT(x, samples) ((samples) == 0 ? 0 : (x))
#else
#define START 0
#define COMBINE(a, b) ((a) + (b))
#define RESULT(x, samples) ((x) / max(samples, 1))
#endif

KERNEL void roi_align(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(R_TYPE, rois), INPUT(I_TYPE, image_of_region),
                      const int images, const int channels, const int height, const int width, const int regions,
                      const int rows, const int columns, const int ratio, const R_COMPUTE scale) {
    const int bin = get_global_id(0);
    const int first = get_global_id(1) * BLOCK;
    const int region = get_global_id(2);
    if (bin >= rows * columns || first >= channels || region >= regions) return;
    const int image = (int)clamp((long)POINTER(image_of_region)[region], 0L, (long)images - 1);
    // Behind the last channel, the last one is computed again and not stored.
    __global const X_TYPE* planes[BLOCK];
    for (int c = 0; c < BLOCK; ++c) {
        planes[c] = POINTER(x) + (image * channels + min(first + c, channels - 1)) * height * width;
    }
    R_COMPUTE corners[4], lost[4];
    for (int i = 0; i < 4; ++i) {
        const R_COMPUTE corner = LOAD_R(POINTER(rois), 4 * region + i), product = corner * scale;
        corners[i] = product - MOVED;
        lost[i] = fma(corner, scale, -product) + (product - (corners[i] + MOVED));
    }
    R_COMPUTE length_x = corners[2] - corners[0], length_y = corners[3] - corners[1];
#ifndef SHIFT
    length_x = fmax(length_x, (R_COMPUTE)1);
    length_y = fmax(length_y, (R_COMPUTE)1);
#endif
    const R_COMPUTE most = 1 << 24;
    const int samples_x = ratio > 0 ? ratio : (int)clamp(ceil(length_x / columns), (R_COMPUTE)0, most);
    const int samples_y = ratio > 0 ? ratio : (int)clamp(ceil(length_y / rows), (R_COMPUTE)0, most);
    const exact left = {corners[0], lost[0]}, top = {corners[1], lost[1]};
    X_COMPUTE results[BLOCK];
    for (int c = 0; c < BLOCK; ++c) results[c] = START;
    for (int j = 0; j < samples_y; ++j) {
        int above = 0, below = 0;
        R_COMPUTE down = 0;
        const exact at_y = position(top, length_y, bin / columns * samples_y + j, rows * samples_y);
        const bool is_row = around(at_y, height, &above, &below, &down);
        for (int i = 0; i < samples_x; ++i) {
            int before = 0, after = 0;
            R_COMPUTE across = 0;
            const exact at_x = position(left, length_x, bin % columns * samples_x + i, columns * samples_x);
            const bool is_inside = is_row && around(at_x, width, &before, &after, &across);
            const int places[4] = {above * width + before, above * width + after, below * width + before,
                                   below * width + after};
            const X_COMPUTE weights[4] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across),
                                          down * across};
            for (int corner = 0; corner < 4; ++corner) {
                for (int c = 0; c < BLOCK; ++c) {
                    const X_COMPUTE term = is_inside ? LOAD_X(planes[c], places[corner]) * weights[corner] : 0;
                    results[c] = COMBINE(results[c], term);
                }
            }
        }
    }
    const int samples = samples_x * samples_y;
    for (int c = 0; c < BLOCK && first + c < channels; ++c) {
        STORE_Y(POINTER(y), (region * channels + first + c) * rows * columns + bin, RESULT(results[c], samples));
    }
}
