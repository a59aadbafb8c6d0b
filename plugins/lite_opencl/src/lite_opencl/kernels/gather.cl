// Loading elements at indices that are data: Gather, GatherND, GatherElements; and ReverseSequence.
//
// One work item moves one element: dimension 0 counts columns, dimension 1 rows; if rows are short (FLAT), dimension 0
// counts elements. An index out of range, which indices.cl reports, is clamped to the nearest valid one here, so that
// no memory outside of the tensors is accessed.

#ifdef FLAT
#define LOCATE(row, column, columns)                  \
    const int item = get_global_id(0);                \
    const int row = item / columns;                   \
    const int column = item - row * columns;
#else
#define LOCATE(row, column, columns)                  \
    const int row = get_global_id(1);                 \
    const int column = get_global_id(0);
#endif

// Return an index from 0 to size - 1; a negative index counts from the end.
static inline int wrapped(const long index, const int size) {
    const long positive = index < 0 ? index + size : index;
    return (int)(positive < 0 ? 0 : positive >= size ? size - 1 : positive);
}

#ifdef GATHER_ROWS

// y[o, t, :] = x[o, i0, i1, ..., :], where (i0, i1, ...) is index tuple t of entry o. `geometry` holds the sizes of the
// dimensions that the DEPTH indices of a tuple address, then their strides. `tuples` is the number of tuples of an
// entry; `x_outer` and `i_outer` are the strides of entries; i_outer is 0 if all entries share the tuples.
KERNEL void gather_rows(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(I_TYPE, i), INPUT(int, geometry), const int rows,
                        const int columns, const int tuples, const int x_outer, const int i_outer EPILOGUE_PARAMETERS) {
    LOCATE(row, column, columns)
    if (row >= rows || column >= columns) return;
    const int outer = row / tuples;
    __global const I_TYPE* tuple = POINTER(i) + outer * i_outer + (row - outer * tuples) * DEPTH;
    int from = outer * x_outer + column;
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
        from += wrapped(tuple[d], POINTER(geometry)[d]) * POINTER(geometry)[DEPTH + d];
    }
    STORE_Y(POINTER(y), row * columns + column, EPILOGUE(LOAD_X(POINTER(x), from), row, column));
}

#endif
#ifdef GATHER_ELEMENTS

// y[.., j, ..] = x[.., i[.., j, ..], ..]. X_INDEX is the offset of the element with index 0 along the axis.
KERNEL void gather_elements(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(I_TYPE, i), const int rows, const int columns,
                            const int axis_size, const int axis_stride X_PARAMETERS EPILOGUE_PARAMETERS) {
    LOCATE(row, column, columns)
    if (row >= rows || column >= columns) return;
    const int index = wrapped(POINTER(i)[row * columns + column], axis_size);
    const X_COMPUTE value = LOAD_X(POINTER(x), X_INDEX + index * axis_stride);
    STORE_Y(POINTER(y), row * columns + column, EPILOGUE(value, row, column));
}

#endif
#ifdef REVERSE

// Copy rows of x [first, second, columns], one dimension being time and the other the batch: the first lengths[b] time
// steps of entry b in reverse order.
KERNEL void reverse_sequence(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), INPUT(long, lengths), const int rows,
                             const int columns, const int second) {
    LOCATE(row, column, columns)
    if (row >= rows || column >= columns) return;
    const int a = row / second;
    const int b = row - a * second;
#ifdef TIME_FIRST
    const int length = (int)clamp(POINTER(lengths)[b], 0L, (long)(rows / second));
    const int from = (a < length ? length - 1 - a : a) * second + b;
#else
    const int length = (int)clamp(POINTER(lengths)[a], 0L, (long)second);
    const int from = a * second + (b < length ? length - 1 - b : b);
#endif
    STORE_Y(POINTER(y), row * columns + column, LOAD_X(POINTER(x), from * columns + column));
}

#endif
