// The most extreme element of each row, and the k most extreme elements.
//
// A row is one axis of a tensor; outer rows, rows and columns have separate strides. With ALONG, neighbouring elements
// in memory belong to one row.
//
// EXTREME(a, b): a is more extreme than b. Of equal elements, the one with the lower index is more extreme, with LAST
// the one with the higher index. NaN is the most extreme number, with NAN_LEAST the least extreme.

static inline bool beats(const X_COMPUTE a, const int i, const X_COMPUTE b, const int j) {
    const bool is_nan = a != a, other_is_nan = b != b;
#ifdef NAN_LEAST
    if (is_nan != other_is_nan) return other_is_nan;
#else
    if (is_nan != other_is_nan) return is_nan;
#endif
    if (is_nan || a == b) {
#ifdef LAST
        return i > j;
#else
        return i < j;
#endif
    }
    return EXTREME(a, b);
}

#define STRIDES(name) \
    const int name##_outer_row, const int name##_row, const int name##_outer_column, const int name##_column
#define AT_ROW(name) (POINTER(name) + outer_row * name##_outer_row + row * ROW_##name)

#if defined(ArgExtreme) || defined(Hardmax)
// SLICES work items share a row, and a tree in local memory joins their results; processors have one work item for each
// row.
KERNEL void arg_extreme(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int rows, const int columns, STRIDES(x)
#ifdef Hardmax
                        , STRIDES(y)
#endif
) {
#ifdef ALONG
    const int slice = (int)get_local_id(0) % SLICES, apart = 1;
    const int own = get_group_id(0) * GROUP_ROWS + (int)get_local_id(0) / SLICES;
#else
    const int slice = (int)get_local_id(0) / GROUP_ROWS, apart = GROUP_ROWS;
    const int own = get_group_id(0) * GROUP_ROWS + (int)get_local_id(0) % GROUP_ROWS;
#endif
    const int row = min(own, rows - 1), outer_row = get_global_id(1);
    __global const X_TYPE* from = AT_ROW(x);
    int index = min(slice, columns - 1);
    X_COMPUTE best = LOAD_X(from, index * COLUMN_x);
    for (int column = slice + SLICES; column < columns; column += SLICES) {
        const X_COMPUTE value = LOAD_X(from, column * COLUMN_x);
        const bool is_better = beats(value, column, best, index);
        best = is_better ? value : best;
        index = is_better ? column : index;
    }
#if SLICES > 1
    __local X_COMPUTE bests[LOCAL_0];
    __local int indices[LOCAL_0];
    const int local_id = get_local_id(0);
    bests[local_id] = best;
    indices[local_id] = index;
    for (int half_of = SLICES / 2; half_of > 0; half_of /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int other = local_id + half_of * apart;
        if (slice < half_of && beats(bests[other], indices[other], bests[local_id], indices[local_id])) {
            bests[local_id] = bests[other];
            indices[local_id] = indices[other];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    index = indices[local_id - slice * apart];
#endif
    if (own >= rows) return;
#ifdef Hardmax
    __global Y_TYPE* to = AT_ROW(y);
    for (int column = slice; column < columns; column += SLICES) STORE_Y(to, column * COLUMN_y, column == index);
#else
    if (slice == 0) STORE_Y(POINTER(y), outer_row * rows + row, index);
#endif
}
#endif

#ifdef TopK
// Every element counts the elements that beat it: their number is its rank. One work item for each element, in
// dimension 0 (dimension 1 counts rows, dimension 2 outer rows): much work, but many work items. For rows of a few
// thousand.
KERNEL void top_k_by_rank(OUTPUT(X_TYPE, values), OUTPUT(long, indices), INPUT(X_TYPE, x), const int rows,
                          const int columns, const int count, STRIDES(values), STRIDES(indices), STRIDES(x)) {
    const int column = get_global_id(0), row = get_global_id(1), outer_row = get_global_id(2);
    if (column >= columns) return;
    __global const X_TYPE* from = AT_ROW(x);
    const X_COMPUTE own = LOAD_X(from, column * COLUMN_x);
    int rank = 0;
    for (int i = 0; i < columns; ++i) rank += beats(LOAD_X(from, i * COLUMN_x), i, own, column) ? 1 : 0;
    if (rank < count) {
        STORE_X(AT_ROW(values), rank * COLUMN_values, own);
        AT_ROW(indices)[rank * COLUMN_indices] = column;
    }
}

// Replace the root of a heap by an element and sift it down. Every element of the heap is beaten by its children: the
// least extreme one is the root.
#define VALUE(i) LOAD_X(values, (i) * values_column)
#define INDEX(i) ((int)indices[(i) * indices_column])
static inline void sift(__global X_TYPE* values, __global long* indices, const int values_column,
                        const int indices_column, const int size, const X_COMPUTE own, const int own_index) {
    int node = 0;
    for (int child = 1; child < size; child = 2 * node + 1) {
        if (child + 1 < size && beats(VALUE(child), INDEX(child), VALUE(child + 1), INDEX(child + 1))) ++child;
        if (!beats(own, own_index, VALUE(child), INDEX(child))) break;
        STORE_X(values, node * values_column, VALUE(child));
        indices[node * indices_column] = indices[child * indices_column];
        node = child;
    }
    STORE_X(values, node * values_column, own);
    indices[node * indices_column] = own_index;
}

// One work item for a row of any length: the best elements so far are a heap in the memory of the results, whose root
// is beaten by all others; an element that beats the root replaces it. In the end the heap is sorted by removing its
// root repeatedly.
KERNEL void top_k_by_heap(OUTPUT(X_TYPE, values_of), OUTPUT(long, indices_of), INPUT(X_TYPE, x), const int rows,
                          const int columns, const int count, STRIDES(values), STRIDES(indices), STRIDES(x)) {
    const int row = get_global_id(0), outer_row = get_global_id(1);
    if (row >= rows) return;
    __global const X_TYPE* from = AT_ROW(x);
    __global X_TYPE* values = POINTER(values_of) + outer_row * values_outer_row + row * values_row;
    __global long* indices = POINTER(indices_of) + outer_row * indices_outer_row + row * indices_row;
    for (int i = 0; i < count; ++i) {
        // Sift up from the new leaf until the parent is beaten.
        const X_COMPUTE own = LOAD_X(from, i * COLUMN_x);
        int node = i;
        while (node > 0) {
            const int parent = (node - 1) / 2;
            if (beats(own, i, VALUE(parent), INDEX(parent))) break;
            STORE_X(values, node * values_column, VALUE(parent));
            indices[node * indices_column] = indices[parent * indices_column];
            node = parent;
        }
        STORE_X(values, node * values_column, own);
        indices[node * indices_column] = i;
    }
    for (int i = count; i < columns; ++i) {
        const X_COMPUTE own = LOAD_X(from, i * COLUMN_x);
        if (beats(own, i, VALUE(0), INDEX(0))) sift(values, indices, values_column, indices_column, count, own, i);
    }
    for (int size = count - 1; size > 0; --size) {
        const X_COMPUTE last = VALUE(size);
        const int last_index = INDEX(size);
        STORE_X(values, size * values_column, VALUE(0));
        indices[size * indices_column] = indices[0];
        sift(values, indices, values_column, indices_column, size, last, last_index);
    }
}
#endif
