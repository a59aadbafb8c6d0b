// Matrix products [rows, depth] x [depth, columns] for processors: a tile of sums in the registers of one work item.
//
// A work item computes ROWS x COLUMNS sums, COLUMNS being VECTORS vectors of WIDTH neighbouring columns. In each step
// along the depth it loads these columns of the right operand once, and one number of each of its rows of the left one:
// ROWS + COLUMNS loads for ROWS * COLUMNS multiplications. Dimension 0 counts tiles of rows, so that work items that
// run one after another read the same columns from the cache; dimension 1 counts tiles of columns, dimension 2 the
// batch.
//
// The last tile of a row or column ends with it and may overlap its neighbour: all tiles are full, and the loop has no
// conditions.
//
// PACKED: the right operand is packed in panels [depth, COLUMNS], which are read sequentially. Else a row of the right
// operand is contiguous, and rows are b_depth apart.

KERNEL void matmul_panels(OUTPUT(Y_TYPE, y), INPUT(A_TYPE, a), INPUT(B_TYPE, b), const int rows, const int columns,
                          const int depth, const int a_row, const int a_depth,
                          const int b_depth A_PARAMETERS B_PARAMETERS EPILOGUE_PARAMETERS) {
    const int batch = get_global_id(2);
    const int first_row = min((int)get_global_id(0) * ROWS, rows - ROWS);
    const int first_column = min((int)get_global_id(1) * COLUMNS, columns - COLUMNS);
    __global const A_TYPE* left = POINTER(a) + A_BATCH(batch) + first_row * a_row;
#ifdef PACKED
    __global const B_TYPE* right = POINTER(b) + B_BATCH(batch) + (int)get_global_id(1) * COLUMNS * depth;
#else
    __global const B_TYPE* right = POINTER(b) + B_BATCH(batch) + first_column;
#endif

    SUM_VECTOR sums[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) sums[i][j] = 0;
    }
    for (int k = 0; k < depth; ++k) {
        SUM_VECTOR neighbours[VECTORS];
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) neighbours[j] = LOAD_B_VECTOR(right, k * b_depth + j * WIDTH);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const SUM value = LOAD_A(left, i * a_row + k * a_depth);
#pragma unroll
            for (int j = 0; j < VECTORS; ++j) sums[i][j] += value * neighbours[j];
        }
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = batch * rows + first_row + i;
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) {
            union {
                SUM_VECTOR vector;
                SUM lanes[WIDTH];
            } sum;
            sum.vector = sums[i][j];
            for (int lane = 0; lane < WIDTH; ++lane) {
                const int column = first_column + j * WIDTH + lane;
                STORE_Y(POINTER(y), row * columns + column, EPILOGUE(sum.lanes[lane], row, column));
            }
        }
    }
}
