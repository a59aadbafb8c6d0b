// Interpolation along one or two neighbouring dimensions: weighted sums of TAPS_Y x TAPS_X elements.
//
// Tables [taps, size], computed before the run, hold the indices and weights of these elements, so that the kernel is
// the same for every mode and every coordinate transformation. Tensors are [outer, rows, columns, inner]; x_outer and
// x_row are the strides of outer entries and rows of x. One work item computes one element: dimension 0 counts columns
// and the inner elements of a column, dimension 1 rows, dimension 2 outer entries. For images inner is 1 (ONE_INSIDE).

KERNEL void interpolate(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(int, row_indices), INPUT(int, column_indices),
                        INPUT(W_TYPE, row_weights), INPUT(W_TYPE, column_weights), INPUT(W_TYPE, fill_value),
                        const int outer, const int rows, const int columns, const int inner, const int x_outer,
                        const int x_row EPILOGUE_PARAMETERS) {
    const int item = get_global_id(0);
    const int y_row = get_global_id(1);
    const int row = get_global_id(2);
    if (item >= columns * inner || y_row >= rows || row >= outer) return;
#ifdef ONE_INSIDE
    const int y_column = item;
    __global const X_TYPE* source = POINTER(x) + row * x_outer;
#else
    const int y_column = item / inner;
    __global const X_TYPE* source = POINTER(x) + row * x_outer + (item - y_column * inner);
#endif
    W_TYPE sum = 0;
#pragma unroll UNROLL
    for (int i = 0; i < TAPS_Y; ++i) {
        const int from_row = POINTER(row_indices)[i * rows + y_row] * x_row;
        W_TYPE part = 0;
#pragma unroll UNROLL
        for (int j = 0; j < TAPS_X; ++j) {
            const int from_column = POINTER(column_indices)[j * columns + y_column] * inner;
            part += (W_TYPE)LOAD_X(source, from_row + from_column) * POINTER(column_weights)[j * columns + y_column];
        }
        sum += part * POINTER(row_weights)[i * rows + y_row];
    }
#ifdef CROPPED
    // The weights of coordinates outside of the input are NaN.
    if (isnan(POINTER(row_weights)[y_row]) || isnan(POINTER(column_weights)[y_column])) sum = POINTER(fill_value)[0];
#endif
    const int column = y_row * columns * inner + item;
    STORE_Y(POINTER(y), row * rows * columns * inner + column, EPILOGUE(sum, row, column));
}
