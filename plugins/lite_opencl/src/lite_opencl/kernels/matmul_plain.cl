// Matrix products of operands with any strides, one sum for each work item: for small products, and for shapes that fit
// none of the other kernels. Neighbouring work items compute neighbouring columns; dimension 1 counts rows, dimension 2
// the batch.

KERNEL void matmul_plain(OUTPUT(Y_TYPE, y), INPUT(A_TYPE, a), INPUT(B_TYPE, b), const int rows, const int columns,
                         const int depth, const int a_row, const int a_depth, const int b_depth,
                         const int b_column A_PARAMETERS B_PARAMETERS EPILOGUE_PARAMETERS) {
    const int column = get_global_id(0), batch = get_global_id(2);
    if (column >= columns) return;
    __global const A_TYPE* left = POINTER(a) + A_BATCH(batch) + (int)get_global_id(1) * a_row;
    __global const B_TYPE* right = POINTER(b) + B_BATCH(batch) + column * b_column;
    SUM sum = 0;
    for (int k = 0; k < depth; ++k) sum += (SUM)LOAD_A(left, k * a_depth) * (SUM)LOAD_B(right, k * b_depth);
    const int row = batch * rows + (int)get_global_id(1);
    STORE_Y(POINTER(y), row * columns + column, EPILOGUE(sum, row, column));
}
