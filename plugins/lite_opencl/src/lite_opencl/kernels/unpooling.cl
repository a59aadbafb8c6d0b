// MaxUnpool: elements go where indices say, all else is zero.
//
// Of several elements with one index the last one stays, in whatever order work items run: every place of the natural
// result first learns the number of its element (-1 for none), then the result is read by these numbers. Indices that
// are out of range go nowhere; indices.cl reports them. Dimension 0 counts elements.

KERNEL void claim_nothing(__global int* restrict winners_base, const ulong winners_offset, const int count) {
    const int place = get_global_id(0);
    if (place < count) POINTER(winners)[place] = -1;
}

KERNEL void claim_places(__global int* restrict winners_base, const ulong winners_offset, INPUT(long, indices),
                         const int elements, const int count) {
    const int element = get_global_id(0);
    if (element >= elements) return;
    const long index = POINTER(indices)[element];
    if (index >= 0 && index < count) atomic_max(POINTER(winners) + index, element);
}

#ifdef X_TYPE
// Dimension 0 counts pixels of the result, [y_depth, y_height, y_width], of which a corner of [depth, height, width] is
// natural and the rest zero; dimension 1 channels, of which so many are natural; dimension 2 images, likewise.
KERNEL void take_winners(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(int, winners), const int images,
                         const int channels, const int depth, const int height, const int width, const int y_channels,
                         const int y_depth, const int y_height, const int y_width) {
    const int pixel = get_global_id(0), channel = get_global_id(1), image = get_global_id(2);
    if (pixel >= y_depth * y_height * y_width) return;
    const int k = pixel % y_width, j = pixel / y_width % y_height, i = pixel / (y_height * y_width);
    const bool is_natural = k < width && j < height && i < depth && channel < channels && image < images;
    const int place = (((image * channels + channel) * depth + i) * height + j) * width + k;
    const int winner = is_natural ? POINTER(winners)[place] : -1;
    STORE_Y(POINTER(y), (image * y_channels + channel) * y_depth * y_height * y_width + pixel,
            winner < 0 ? 0 : LOAD_X(POINTER(x), winner));
}
#endif
