// Matrix products for GPUs: a work group computes a tile of LOCAL_1 * ROWS rows and LOCAL_0 * COLUMNS columns, and
// shares the parts of both operands in local memory, DEPTH steps along the depth at a time.
//
// A work item computes ROWS x COLUMNS sums that are LOCAL_1 rows and LOCAL_0 columns apart: neighbouring work items
// then load neighbouring elements of local memory, and store neighbouring results. Dimension 0 counts columns,
// dimension 1 rows, dimension 2 the batch.
//
// A_ALONG_DEPTH, B_ALONG_DEPTH: the operand is contiguous along the depth, so neighbouring work items load along it;
// else they load along rows or columns. Operands are read in place, transposed or not.

#define ITEMS (LOCAL_0 * LOCAL_1)
#define TILE_ROWS (LOCAL_1 * ROWS)
#define TILE_COLUMNS (LOCAL_0 * COLUMNS)
// One element more than needed, so that a column of a tile is spread over the banks of local memory.
#define PITCH(size) ((size) + 1)

KERNEL void matmul_local(OUTPUT(Y_TYPE, y), INPUT(A_TYPE, a), INPUT(B_TYPE, b), const int rows, const int columns,
                         const int depth, const int a_row, const int a_depth, const int b_depth,
                         const int b_column A_PARAMETERS B_PARAMETERS EPILOGUE_PARAMETERS) {
    const int lane = get_local_id(0), layer = get_local_id(1), batch = get_global_id(2);
    const int item = layer * LOCAL_0 + lane;
    const int first_row = (int)get_group_id(1) * TILE_ROWS, first_column = (int)get_group_id(0) * TILE_COLUMNS;
    __global const A_TYPE* left = POINTER(a) + A_BATCH(batch);
    __global const B_TYPE* right = POINTER(b) + B_BATCH(batch);
    __local SUM left_tile[DEPTH][PITCH(TILE_ROWS)];
    __local SUM right_tile[DEPTH][PITCH(TILE_COLUMNS)];

    SUM sums[ROWS][COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) sums[i][j] = 0;
    }
    for (int start = 0; start < depth; start += DEPTH) {
        // Beyond the depth, zeros are added; beyond the last row or column, its sums are computed but not stored again.
        for (int n = item; n < DEPTH * TILE_ROWS; n += ITEMS) {
#ifdef A_ALONG_DEPTH
            const int k = n % DEPTH, i = n / DEPTH;
#else
            const int k = n / TILE_ROWS, i = n % TILE_ROWS;
#endif
            const int row = min(first_row + i, rows - 1);
            left_tile[k][i] = start + k < depth ? (SUM)LOAD_A(left, row * a_row + (start + k) * a_depth) : (SUM)0;
        }
        for (int n = item; n < DEPTH * TILE_COLUMNS; n += ITEMS) {
#ifdef B_ALONG_DEPTH
            const int k = n % DEPTH, j = n / DEPTH;
#else
            const int k = n / TILE_COLUMNS, j = n % TILE_COLUMNS;
#endif
            const int column = min(first_column + j, columns - 1);
            right_tile[k][j] = start + k < depth ? (SUM)LOAD_B(right, column * b_column + (start + k) * b_depth) : (SUM)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEPTH; ++k) {
            SUM neighbours[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) neighbours[j] = right_tile[k][lane + j * LOCAL_0];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const SUM value = left_tile[k][layer + i * LOCAL_1];
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j) sums[i][j] += value * neighbours[j];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            const int own_row = first_row + layer + i * LOCAL_1, column = first_column + lane + j * LOCAL_0;
            if (own_row < rows && column < columns) {
                const int row = batch * rows + own_row;
                STORE_Y(POINTER(y), row * columns + column, EPILOGUE(sums[i][j], row, column));
            }
        }
    }
}
