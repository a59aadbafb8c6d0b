// MaxUnpool: elements are stored at indices, all other elements of the result are zero.
//
// The natural result has the shape that the pool's input had; the output shape may be larger. If several elements have
// the same index, the last one wins, in whatever order work items run: first `winners` gets the number of the last
// element at each index of the natural result (-1 for none), then the result is gathered by these numbers. Indices out
// of range are skipped; indices.cl reports them. Dimension 0 counts elements.

KERNEL void clear_winners(__global int* restrict winners_base, const ulong winners_offset, const int count) {
    const int index = get_global_id(0);
    if (index < count) POINTER(winners)[index] = -1;
}

KERNEL void elect_winners(__global int* restrict winners_base, const ulong winners_offset, INPUT(long, indices),
                          const int elements, const int count) {
    const int element = get_global_id(0);
    if (element >= elements) return;
    const long index = POINTER(indices)[element];
    if (index >= 0 && index < count) atomic_max(POINTER(winners) + index, element);
}

#ifdef X_TYPE
// Dimension 0 counts pixels of the result, [y_depth, y_height, y_width], whose first corner of [depth, height, width]
// is the natural result and the rest zero; dimension 1 counts channels, the first `channels` of which are natural, and
// dimension 2 images, the first `images` of which are natural.
KERNEL void take_winners(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(int, winners), const int images,
                         const int channels, const int depth, const int height, const int width, const int y_channels,
                         const int y_depth, const int y_height, const int y_width) {
    const int pixel = get_global_id(0), channel = get_global_id(1), image = get_global_id(2);
    if (pixel >= y_depth * y_height * y_width) return;
    const int k = pixel % y_width, j = pixel / y_width % y_height, i = pixel / (y_height * y_width);
    const bool is_natural = k < width && j < height && i < depth && channel < channels && image < images;
    const int index = (((image * channels + channel) * depth + i) * height + j) * width + k;
    const int winner = is_natural ? POINTER(winners)[index] : -1;
    STORE_Y(POINTER(y), (image * y_channels + channel) * y_depth * y_height * y_width + pixel,
            winner < 0 ? 0 : LOAD_X(POINTER(x), winner));
}
#endif
