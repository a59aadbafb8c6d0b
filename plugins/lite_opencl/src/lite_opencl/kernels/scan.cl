// Sums of all elements of a row up to each place; with EXCLUSIVE without the element at the place.
//
// SLICES work items share a row: each adds up a stretch of it, learns the sum of all stretches before its own from
// local memory, and goes through its stretch again. Processors have one work item for a row, which goes once. Sums are
// made in blocks, so that the rounding errors of long ones do not add up. ACC is the type that is computed in.

#define STRIDES(name) \
    const int name##_outer_row, const int name##_row, const int name##_outer_column, const int name##_column
#define AT_ROW(name) (POINTER(name) + outer_row * name##_outer_row + row * ROW_##name)
#define BLOCK 64

KERNEL void running_sum(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int rows, const int columns, STRIDES(y),
                        STRIDES(x)) {
#ifdef ALONG
    const int slice = (int)get_local_id(0) % SLICES, apart = 1;
    const int own = get_group_id(0) * GROUP_ROWS + (int)get_local_id(0) / SLICES;
#else
    const int slice = (int)get_local_id(0) / GROUP_ROWS, apart = GROUP_ROWS;
    const int own = get_group_id(0) * GROUP_ROWS + (int)get_local_id(0) % GROUP_ROWS;
#endif
    const int row = min(own, rows - 1), outer_row = get_global_id(1);
    __global const X_TYPE* from = AT_ROW(x);
    const int stretch = (columns + SLICES - 1) / SLICES;
    const int begin = min(slice * stretch, columns), end = min(begin + stretch, columns);
    ACC before = 0;
#if SLICES > 1
    __local ACC partials[LOCAL_0];
    ACC mine = 0;
    for (int column = begin; column < end; ++column) mine += (ACC)LOAD_X(from, column * COLUMN_x);
    partials[get_local_id(0)] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    __local const ACC* others = partials + ((int)get_local_id(0) - slice * apart);
    for (int i = 0; i < slice; ++i) before += others[i * apart];
#endif
    if (own >= rows) return;
    __global Y_TYPE* to = AT_ROW(y);
    for (int block = begin; block < end; block += BLOCK) {
        ACC sum = 0;
        for (int column = block; column < min(block + BLOCK, end); ++column) {
            const ACC value = (ACC)LOAD_X(from, column * COLUMN_x);
#ifdef EXCLUSIVE
            STORE_Y(to, column * COLUMN_y, before + sum);
            sum += value;
#else
            sum += value;
            STORE_Y(to, column * COLUMN_y, before + sum);
#endif
        }
        before += sum;
    }
}
