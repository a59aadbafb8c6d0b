// Looking for indices that are out of range: kernels that use them clamp or skip them, and go on.
//
// One work item looks at one index. `limits` holds the lowest index of each of DEPTH dimensions, which the indices of a
// tuple address, then the highest ones. `first` is the number of the fault of the first dimension; faults.py says what
// the record holds.

KERNEL void check_indices(OUTPUT(int, record), INPUT(I_TYPE, i), INPUT(long, limits), const int count,
                          const int first) {
    const int item = get_global_id(0);
    if (item >= count) return;
    const int dimension = item % DEPTH;
    const long index = POINTER(i)[item];
    if (index >= POINTER(limits)[dimension] && index <= POINTER(limits)[DEPTH + dimension]) return;
    if (atomic_cmpxchg((volatile __global int*)POINTER(record), 0, first + dimension) == 0) {
        *(__global long*)(POINTER(record) + 2) = index;
    }
}
