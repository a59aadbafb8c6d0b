// Matrix products of operands that are both contiguous along the depth: products with a vector, or few rows with a
// transposed right operand. Each number is loaded for one sum only, so memory is the limit, not arithmetic.
//
// A work group computes one sum: LOCAL_0 work items take interleaved vectors of WIDTH numbers along the depth, and
// their sums are added in a tree. Dimension 0 counts columns, dimension 1 rows, dimension 2 the batch.

KERNEL void matmul_dot(OUTPUT(Y_TYPE, y), INPUT(A_TYPE, a), INPUT(B_TYPE, b), const int rows, const int columns,
                       const int depth, const int a_row, const int b_column A_PARAMETERS B_PARAMETERS
                       EPILOGUE_PARAMETERS) {
    const int item = get_local_id(0);
    const int column = get_group_id(0), batch = get_global_id(2);
    __global const A_TYPE* left = POINTER(a) + A_BATCH(batch) + (int)get_global_id(1) * a_row;
    __global const B_TYPE* right = POINTER(b) + B_BATCH(batch) + column * b_column;

    // CHAINS independent sums, so that an addition does not wait for the one before.
    SUM_VECTOR sums[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sums[i] = 0;
    const int stride = LOCAL_0 * CHAINS * WIDTH;
    const int whole = depth / stride * stride;
    for (int k = item * WIDTH; k < whole; k += stride) {
#pragma unroll
        for (int i = 0; i < CHAINS; ++i) {
            const int index = k + i * LOCAL_0 * WIDTH;
            sums[i] += LOAD_A_VECTOR(left, index) * LOAD_B_VECTOR(right, index);
        }
    }
#pragma unroll
    for (int i = 1; i < CHAINS; ++i) sums[0] += sums[i];
    union {
        SUM_VECTOR vector;
        SUM lanes[WIDTH];
    } parts;
    parts.vector = sums[0];
    SUM sum = 0;
    for (int lane = 0; lane < WIDTH; ++lane) sum += parts.lanes[lane];
    for (int k = whole + item; k < depth; k += LOCAL_0) sum += (SUM)LOAD_A(left, k) * (SUM)LOAD_B(right, k);

#if LOCAL_0 > 1
    __local SUM shared[LOCAL_0];
    shared[item] = sum;
    for (int half_way = LOCAL_0 / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_way) shared[item] += shared[item + half_way];
    }
    sum = shared[0];
#endif
    if (item == 0) {
        const int row = batch * rows + (int)get_global_id(1);
        STORE_Y(POINTER(y), row * columns + column, EPILOGUE(sum, row, column));
    }
}
