// Storing elements at indices that are data, in a tensor that already holds the data: ScatterND, ScatterElements.
//
// Updates are numbered. If several updates have the same destination, the result must be the same as applying them in
// order, on every device and in every run:
// - Without a reduction the last one wins. `elect` finds the last update of every destination, and `write_winners`
//   stores these updates, all at once (or all updates if destinations are known to differ: UNIQUE).
// - With a reduction, updates that may have the same destination are applied by one work item, in order: `reduce_rows`
//   has a work item for each column of all rows, `reduce_lines` one for each line along the axis.

// Return an index from 0 to size - 1; a negative index counts from the end. An index out of range, which indices.cl
// reports, is clamped to the nearest valid one.
static inline int wrapped(const long index, const int size) {
    const long positive = index < 0 ? index + size : index;
    return (int)(positive < 0 ? 0 : positive >= size ? size - 1 : positive);
}

// DESTINATION: the row of the tensor that an update changes. In ScatterElements rows are single elements; Y_INDEX is
// the offset of the element with index 0 along the axis. In ScatterND an update is a row at a tuple of DEPTH indices;
// `geometry` holds the sizes of the dimensions that they address, then their strides in rows.
#ifdef ALONG_AXIS
#define DESTINATION_PARAMETERS INPUT(I_TYPE, i), const int axis_size, const int axis_stride Y_PARAMETERS
#define DESTINATION(row) (Y_INDEX + wrapped(POINTER(i)[row], axis_size) * axis_stride)
#else
#define DESTINATION_PARAMETERS INPUT(I_TYPE, i), INPUT(int, geometry)
#define DESTINATION(row) destination_of_tuple(POINTER(i) + (row) * DEPTH, POINTER(geometry))
static inline int destination_of_tuple(__global const I_TYPE* tuple, __global const int* geometry) {
    int row = 0;
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) row += wrapped(tuple[d], geometry[d]) * geometry[DEPTH + d];
    return row;
}
#endif

#define COMBINE_add(a, b) ((a) + (b))
#define COMBINE_mul(a, b) ((a) * (b))
// The larger and the smaller of two numbers; NaN if either is NaN.
#define COMBINE_max(a, b) ((a) != (a) || (a) >= (b) ? (a) : (b))
#define COMBINE_min(a, b) ((a) != (a) || (a) <= (b) ? (a) : (b))

#ifdef ELECT

// Set winners[destination], initially -1, to the number of the last update there. One work item for each update.
KERNEL void elect(OUTPUT(int, winners), const int updates, DESTINATION_PARAMETERS) {
    const int row = get_global_id(0);
    if (row < updates) atomic_max((volatile __global int*)POINTER(winners) + DESTINATION(row), row);
}

#endif
#ifdef WRITE

// One work item for each element of the updates: dimension 0 counts the elements of a row, dimension 1 rows; with
// ROWS_FIRST it is the other way round.
KERNEL void write_winners(OUTPUT(Y_TYPE, y), INPUT(U_TYPE, update),
#ifndef UNIQUE
                          INPUT(int, winners),
#endif
                          const int updates, const int columns, DESTINATION_PARAMETERS) {
#ifdef ROWS_FIRST
    const int row = get_global_id(0);
    const int column = get_global_id(1);
#else
    const int row = get_global_id(1);
    const int column = get_global_id(0);
#endif
    if (row >= updates || column >= columns) return;
    const int destination = DESTINATION(row);
#ifndef UNIQUE
    if (POINTER(winners)[destination] != row) return;
#endif
    STORE_Y(POINTER(y), destination * columns + column, LOAD_U(POINTER(update), row * columns + column));
}

#endif
#ifdef REDUCE_ROWS

// One work item for each column.
KERNEL void reduce_rows(OUTPUT(Y_TYPE, y), INPUT(U_TYPE, update), const int updates, const int columns,
                        DESTINATION_PARAMETERS) {
    const int column = get_global_id(0);
    if (column >= columns) return;
    for (int row = 0; row < updates; ++row) {
        const int index = DESTINATION(row) * columns + column;
        const Y_COMPUTE before = LOAD_Y(POINTER(y), index);
        const Y_COMPUTE change = LOAD_U(POINTER(update), row * columns + column);
        STORE_Y(POINTER(y), index, COMBINE(before, change));
    }
}

#endif
#ifdef REDUCE_LINES

// One work item for each line. Y_INDEX and I_INDEX are the offsets of a line in the tensor and in the indices, which
// have the layout of the updates; a line has `count` updates that are `step` apart.
KERNEL void reduce_lines(OUTPUT(Y_TYPE, y), INPUT(U_TYPE, update), const int lines, const int count, const int step,
                         INPUT(I_TYPE, i), const int axis_size, const int axis_stride Y_PARAMETERS I_PARAMETERS) {
    const int row = get_global_id(0);
    if (row >= lines) return;
    const int first_y = Y_INDEX;
    const int first_i = I_INDEX;
    for (int j = 0; j < count; ++j) {
        const int index = first_y + wrapped(POINTER(i)[first_i + j * step], axis_size) * axis_stride;
        const Y_COMPUTE before = LOAD_Y(POINTER(y), index);
        const Y_COMPUTE change = LOAD_U(POINTER(update), first_i + j * step);
        STORE_Y(POINTER(y), index, COMBINE(before, change));
    }
}

#endif
