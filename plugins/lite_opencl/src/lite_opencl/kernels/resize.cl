// Interpolation along one or two neighbouring dimensions: weighted sums of TAPS_Y x TAPS_X elements.
//
// Which elements and with what weights stands in tables [taps, size], made before the run, so the kernel is the same for
// every mode and every rule for coordinates. Tensors are [outer, rows, columns, inner]; x_outer and x_row lead from one
// outer entry and row of x to the next. One work item makes one element: dimension 0 counts columns and what lies inside
// of them, dimension 1 rows, dimension 2 outer entries. For images inner is 1 (ONE_INSIDE): neighbours are pixels.

KERNEL void interpolate(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(int, row_indices), INPUT(int, column_indices),
                        INPUT(W_TYPE, row_weights), INPUT(W_TYPE, column_weights), INPUT(W_TYPE, beyond),
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
    // The weights of what lies outside of the input are NaN.
    if (isnan(POINTER(row_weights)[y_row]) || isnan(POINTER(column_weights)[y_column])) sum = POINTER(beyond)[0];
#endif
    const int column = y_row * columns * inner + item;
    STORE_Y(POINTER(y), row * rows * columns * inner + column, EPILOGUE(sum, row, column));
}
