// Matrix products of few rows for GPUs, where the time is that of loading the right operand once.
//
// A work group computes LOCAL_0 neighbouring columns of all ROWS rows. The depth is split among its LOCAL_1 layers of
// work items, since otherwise there would be too few of them to hide the latency of memory; the sums of the layers are
// added in the end. Dimension 0 counts columns, dimension 1 layers, dimension 2 the batch.

KERNEL void matmul_split(OUTPUT(Y_TYPE, y), INPUT(A_TYPE, a), INPUT(B_TYPE, b), const int columns, const int depth,
                         const int a_row, const int a_depth, const int b_depth,
                         const int b_column A_PARAMETERS B_PARAMETERS EPILOGUE_PARAMETERS) {
    const int lane = get_local_id(0), layer = get_local_id(1);
    const int column = get_global_id(0), batch = get_global_id(2);
    // Work items beyond the last column compute the last column, too, and store nothing.
    __global const A_TYPE* left = POINTER(a) + A_BATCH(batch);
    __global const B_TYPE* right = POINTER(b) + B_BATCH(batch) + min(column, columns - 1) * b_column;

    SUM sums[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) sums[i] = 0;
    for (int k = layer; k < depth; k += LOCAL_1) {
        const SUM value = LOAD_B(right, k * b_depth);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) sums[i] += (SUM)LOAD_A(left, i * a_row + k * a_depth) * value;
    }

    __local SUM shared[LOCAL_1][LOCAL_0];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        shared[layer][lane] = sums[i];
        for (int half_way = LOCAL_1 / 2; half_way > 0; half_way /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (layer < half_way) shared[layer][lane] += shared[layer + half_way][lane];
        }
        if (layer == 0 && column < columns) {
            const int row = batch * ROWS + i;
            STORE_Y(POINTER(y), row * columns + column, EPILOGUE(shared[0][lane], row, column));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
