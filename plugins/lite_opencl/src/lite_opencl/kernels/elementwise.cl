// Element-wise operators with broadcasting over strided tensors, and strided copies.
//
// One work item computes one element. If rows are long, work items count rows and columns; if they are short (FLAT),
// work items count elements. X_INDEX and Y_INDEX are the offsets of the element of a row and a column.

KERNEL void elementwise(__global Y_TYPE* y_base, const ulong y_offset, __global const X_TYPE* x_base,
                        const ulong x_offset, const int rows, const int columns Y_PARAMETERS X_PARAMETERS
                        EPILOGUE_PARAMETERS) {
#ifdef FLAT
    const int item = get_global_id(0);
    const int row = item / columns;
    const int column = item - row * columns;
#else
    const int row = get_global_id(1);
    const int column = get_global_id(0);
#endif
    if (row < rows && column < columns) {
        STORE_Y(POINTER(y), Y_INDEX, EPILOGUE(LOAD_X(POINTER(x), X_INDEX), row, column));
    }
}
