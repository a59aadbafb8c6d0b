// Images [batch, channels, height, width] as sums of the overlapping blocks
// [batch, channels, BLOCK_H x BLOCK_W, count_h x count_w].
//
// One work item sums one pixel, in the order of the blocks' elements: dimension 0 counts pixels, dimension 1 planes.

KERNEL void col2im(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int planes, const int height, const int width,
                   const int count_h, const int count_w, const int pad_top, const int pad_left) {
    const int pixel = get_global_id(0);
    const int plane = get_global_id(1);
    if (pixel >= height * width || plane >= planes) return;
    const int row = pixel / width + pad_top;
    const int column = pixel % width + pad_left;
    __global const X_TYPE* source = POINTER(x) + plane * BLOCK_H * BLOCK_W * count_h * count_w;
    X_COMPUTE sum = 0;
    for (int i = 0; i < BLOCK_H; ++i) {
        const int from_row = row - i * DILATION_H;
        if (from_row < 0 || from_row % STRIDE_H || from_row / STRIDE_H >= count_h) continue;
        for (int j = 0; j < BLOCK_W; ++j) {
            const int from_column = column - j * DILATION_W;
            if (from_column < 0 || from_column % STRIDE_W || from_column / STRIDE_W >= count_w) continue;
            const int block = from_row / STRIDE_H * count_w + from_column / STRIDE_W;
            const X_COMPUTE value = LOAD_X(source, (i * BLOCK_W + j) * count_h * count_w + block);
#ifdef LOGICAL
            sum = sum || value;
#else
            sum += value;
#endif
        }
    }
    STORE_Y(POINTER(y), plane * height * width + pixel, sum);
}
