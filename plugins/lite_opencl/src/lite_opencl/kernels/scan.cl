// Running sums of rows: the sum of all elements up to each element, with EXCLUSIVE without the element itself.
//
// SLICES work items share a row: each sums one segment, adds the sums of all earlier segments from local memory, and
// walks its segment again to store the results. Processors have one work item for a row, which walks it once. Sums are
// computed in blocks, so that the rounding errors of long rows do not accumulate. ACC is the type of the sums.

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
    const int segment = (columns + SLICES - 1) / SLICES;
    const int begin = min(slice * segment, columns), end = min(begin + segment, columns);
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
