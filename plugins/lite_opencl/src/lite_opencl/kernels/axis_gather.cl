// Gathering along all axes: Pad, CenterCropPad, Resize by the nearest element. Each element of the result is an element
// of the source or the fill value.
//
// The source element follows from a table for rows and a table for columns: its offset is the sum of their entries. If
// one of them is OUTSIDE, the result is the fill value; ALL_INSIDE says that there are no such entries. Thus one kernel
// without a division serves every mode of every operator.
// One work item computes one element: dimension 0 counts columns, dimension 1 rows; if rows are short (FLAT), dimension
// 0 counts elements.

#define OUTSIDE INT_MIN

KERNEL void gather_axes(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(F_TYPE, fill_value), INPUT(int, row_table),
                        INPUT(int, column_table), const int rows, const int columns EPILOGUE_PARAMETERS) {
#ifdef FLAT
    const int item = get_global_id(0);
    const int row = item / columns;
    const int column = item - row * columns;
#else
    const int row = get_global_id(1);
    const int column = get_global_id(0);
#endif
    if (row >= rows || column >= columns) return;
    const int from_row = POINTER(row_table)[row];
    const int from_column = POINTER(column_table)[column];
#ifdef ALL_INSIDE
    const X_COMPUTE value = LOAD_X(POINTER(x), from_row + from_column);
#else
    const bool inside = from_row != OUTSIDE && from_column != OUTSIDE;
    const X_COMPUTE value =
        inside ? (X_COMPUTE)LOAD_X(POINTER(x), from_row + from_column) : (X_COMPUTE)LOAD_F(POINTER(fill_value), 0);
#endif
    STORE_Y(POINTER(y), row * columns + column, EPILOGUE(value, row, column));
}
