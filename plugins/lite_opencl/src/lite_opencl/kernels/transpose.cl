// Transposes many matrices in one call.
//
// A work group moves a tile of TILE x TILE elements through local memory, so that loads follow the rows of the source
// and stores the rows of the result: neighbouring work items access neighbouring elements in both.
// Dimension 0 counts columns of the source, dimension 1 its rows, LOCAL_1 at a time, dimension 2 matrices. X_INDEX and
// Y_INDEX are the offsets of matrix number `row`.

KERNEL void transpose(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int rows, const int columns, const int x_stride,
                      const int y_stride Y_PARAMETERS X_PARAMETERS) {
    // One more column than is used, so that the elements of a column are in different banks of local memory on GPUs.
    __local X_COMPUTE tile[TILE][TILE + 1];
    const int row = get_global_id(2);
    const int first_row = (int)get_group_id(1) * TILE;
    const int first_column = (int)get_group_id(0) * TILE;
    const int lane = get_local_id(0);
    __global const X_TYPE* source = POINTER(x) + X_INDEX;
    __global Y_TYPE* result = POINTER(y) + Y_INDEX;
#pragma unroll
    for (int i = 0; i < TILE; i += LOCAL_1) {
        const int r = i + (int)get_local_id(1);
        if (first_row + r < rows && first_column + lane < columns) {
            tile[r][lane] = LOAD_X(source, (first_row + r) * x_stride + first_column + lane);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < TILE; i += LOCAL_1) {
        const int c = i + (int)get_local_id(1);
        if (first_column + c < columns && first_row + lane < rows) {
            STORE_Y(result, (first_column + c) * y_stride + first_row + lane, tile[lane][c]);
        }
    }
}
