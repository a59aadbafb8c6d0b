// Sampling of images x [batch, channels, spatial] at the coordinates grid [batch, points, RANK]; the result is
// [batch, channels, points].
//
// One work item samples one point of one channel: dimension 0 counts points, dimension 1 channels, dimension 2 images.
// A sample uses TAPS neighbours along each of RANK axes: 1 (nearest), 2 (linear) or 4 (cubic).

// Fused multiplication and addition would round coordinates half-way between two elements differently.
#pragma OPENCL FP_CONTRACT OFF

#define FAR 2147483648.0f

// Mirror a coordinate at both borders until it is between them.
static inline G_COMPUTE reflected(const G_COMPUTE x, const G_COMPUTE low, const G_COMPUTE high) {
    const G_COMPUTE span = high - low;
    if (span == 0) return 0;
    G_COMPUTE distance = fmod(x - low, 2 * span);
    if (distance < 0) distance += 2 * span;
    return low + (distance > span ? 2 * span - distance : distance);
}

// Mirror an index at the centres of the corner elements, or at their outer borders.
static inline long reflected_index(const long index, const long size) {
#ifdef ALIGN_CORNERS
    const long period = 2 * (size - 1);
    if (period == 0) return 0;
    const long remainder = (index % period + period) % period;
    return remainder < size ? remainder : period - remainder;
#else
    const long period = 2 * size;
    const long remainder = (index % period + period) % period;
    return remainder < size ? remainder : period - 1 - remainder;
#endif
}

// Convert a coordinate from -1 to 1 to elements; coordinates outside are handled by the padding mode.
static inline G_COMPUTE coordinate_of(const G_COMPUTE grid, const int size) {
#ifdef ALIGN_CORNERS
    const G_COMPUTE low = 0, high = size - 1;
    G_COMPUTE x = (grid + 1) / 2 * (size - 1);
#else
    const G_COMPUTE low = -0.5f, high = size - (G_COMPUTE)0.5f;
    G_COMPUTE x = ((grid + 1) * size - 1) / 2;
#endif
    // NaN is treated as far outside; larger numbers would overflow when converted to an index.
    x = isnan(x) ? (G_COMPUTE)-FAR : clamp(x, (G_COMPUTE)-FAR, (G_COMPUTE)FAR);
#if TAPS == 1
    x = rint(x);
#endif
#if defined(PADDING_border)
    if (x < low || x > high) x = clamp(x, (G_COMPUTE)0, (G_COMPUTE)(size - 1));
#elif defined(PADDING_reflection)
    if (x < low || x > high) x = reflected(x, low, high);
#endif
    return x;
}

// Return the weight of an element by its distance: a triangle, or Keys' cubic with a = -0.75 (equation 4 of R. Keys,
// "Cubic convolution interpolation for digital image processing", 1981).
static inline G_COMPUTE weight_at(const G_COMPUTE distance) {
    const G_COMPUTE d = fabs(distance);
#if TAPS == 2
    return fmax(1 - d, (G_COMPUTE)0);
#else
    const G_COMPUTE a = -0.75f;
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
#endif
}

KERNEL void grid_sample(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(G_TYPE, grid), INPUT(int, sizes), const int points,
                        const int channels, const int images, const int elements) {
    const int point = get_global_id(0);
    const int channel = get_global_id(1);
    const int image = get_global_id(2);
    if (point >= points || channel >= channels || image >= images) return;
    __global const X_TYPE* plane = POINTER(x) + (image * channels + channel) * elements;
    int offsets[RANK][TAPS];  // elements from the beginning of the plane, or -1 for zero padding
    G_COMPUTE weights[RANK][TAPS];
    int stride = elements;
    for (int axis = 0; axis < RANK; ++axis) {
        const int size = POINTER(sizes)[axis];
        stride /= size;
        // The innermost axis comes first.
        const G_COMPUTE at = coordinate_of(LOAD_G(POINTER(grid), (image * points + point) * RANK + RANK - 1 - axis), size);
        const G_COMPUTE base = TAPS == 1 ? rint(at) : floor(at);
        for (int tap = 0; tap < TAPS; ++tap) {
            const int shift = TAPS == 4 ? tap - 1 : tap;
            long index = (long)base + shift;
            const bool within = index >= 0 && index < size;
#if defined(PADDING_reflection)
            if (!within) index = reflected_index(index, size);
#endif
            const int offset = (int)clamp(index, 0L, (long)size - 1) * stride;
#if defined(PADDING_zeros)
            offsets[axis][tap] = within ? offset : -1;
#else
            offsets[axis][tap] = offset;
#endif
#if TAPS > 1
            weights[axis][tap] = weight_at(shift - (at - base));
#endif
        }
    }
    SUM_TYPE sum = 0;
    for (int corner = 0; corner < CORNERS; ++corner) {
        int offset = 0, rest = corner;
        bool is_inside = true;
        G_COMPUTE weight = 1;
        for (int axis = RANK - 1; axis >= 0; --axis, rest /= TAPS) {
            const int along_axis = offsets[axis][rest % TAPS];
            is_inside = is_inside && along_axis >= 0;
            offset += along_axis;
#if TAPS > 1
            weight *= weights[axis][rest % TAPS];
#endif
        }
        const SUM_TYPE value = is_inside ? (SUM_TYPE)LOAD_X(plane, offset) : (SUM_TYPE)0;
#if TAPS > 1
        sum += value * weight;
#else
        sum = value;
#endif
    }
    STORE_Y(POINTER(y), (image * channels + channel) * points + point, sum);
}
