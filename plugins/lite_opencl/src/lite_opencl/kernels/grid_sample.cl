// Sampling images at any places: x [batch, channels, spatial] at grid [batch, points, RANK] gives
// [batch, channels, points].
//
// One work item samples one point of one channel: dimension 0 counts points, dimension 1 channels, dimension 2 images.
// TAPS neighbours along each of RANK axes make up a sample: 1 (nearest), 2 (linear) or 4 (cubic).

// A product and a sum that are rounded once would round a place half-way between two elements differently.
#pragma OPENCL FP_CONTRACT OFF

#define FAR 2147483648.0f

// Coordinates mirrored at both borders until they lie between them.
static inline G_COMPUTE reflected(const G_COMPUTE x, const G_COMPUTE low, const G_COMPUTE high) {
    const G_COMPUTE span = high - low;
    if (span == 0) return 0;
    G_COMPUTE distance = fmod(x - low, 2 * span);
    if (distance < 0) distance += 2 * span;
    return low + (distance > span ? 2 * span - distance : distance);
}

// The same for indices, between the centres of the corner elements or between their outer corners.
static inline long reflected_index(const long index, const long size) {
#ifdef ALIGN_CORNERS
    const long period = 2 * (size - 1);
    if (period == 0) return 0;
    const long place = (index % period + period) % period;
    return place < size ? place : period - place;
#else
    const long period = 2 * size;
    const long place = (index % period + period) % period;
    return place < size ? place : period - 1 - place;
#endif
}

// A coordinate in elements for one from -1 to 1; one outside is brought in as the padding says.
static inline G_COMPUTE coordinate_of(const G_COMPUTE grid, const int size) {
#ifdef ALIGN_CORNERS
    const G_COMPUTE low = 0, high = size - 1;
    G_COMPUTE x = (grid + 1) / 2 * (size - 1);
#else
    const G_COMPUTE low = -0.5f, high = size - (G_COMPUTE)0.5f;
    G_COMPUTE x = ((grid + 1) * size - 1) / 2;
#endif
    // NaN counts as far outside; what is farther than any index would overflow when converted.
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

// The weight of an element at a distance: a triangle, or Keys' cubic convolution with a = -0.75 (equation 4 of R. Keys,
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
    int places[RANK][TAPS];  // elements from the beginning of the plane, or -1 where there is a zero
    G_COMPUTE weights[RANK][TAPS];
    int stride = elements;
    for (int axis = 0; axis < RANK; ++axis) {
        const int size = POINTER(sizes)[axis];
        stride /= size;
        // The innermost axis comes first.
        const G_COMPUTE at = coordinate_of(LOAD_G(POINTER(grid), (image * points + point) * RANK + RANK - 1 - axis), size);
        const G_COMPUTE base = TAPS == 1 ? rint(at) : floor(at);
        for (int tap = 0; tap < TAPS; ++tap) {
            const int offset = TAPS == 4 ? tap - 1 : tap;
            long index = (long)base + offset;
            const bool within = index >= 0 && index < size;
#if defined(PADDING_reflection)
            if (!within) index = reflected_index(index, size);
#endif
            const int place = (int)clamp(index, 0L, (long)size - 1) * stride;
#if defined(PADDING_zeros)
            places[axis][tap] = within ? place : -1;
#else
            places[axis][tap] = place;
#endif
#if TAPS > 1
            weights[axis][tap] = weight_at(offset - (at - base));
#endif
        }
    }
    SUM_TYPE sum = 0;
    for (int corner = 0; corner < CORNERS; ++corner) {
        int place = 0, rest = corner;
        bool counts = true;
        G_COMPUTE weight = 1;
        for (int axis = RANK - 1; axis >= 0; --axis, rest /= TAPS) {
            const int own = places[axis][rest % TAPS];
            counts = counts && own >= 0;
            place += own;
#if TAPS > 1
            weight *= weights[axis][rest % TAPS];
#endif
        }
        const SUM_TYPE value = counts ? (SUM_TYPE)LOAD_X(plane, place) : (SUM_TYPE)0;
#if TAPS > 1
        sum += value * weight;
#else
        sum = value;
#endif
    }
    STORE_Y(POINTER(y), (image * channels + channel) * points + point, sum);
}
