// Checks for indices out of range. Kernels that use such indices clamp or skip them, and continue.
//
// One work item checks one index. `limits` holds the lowest index of each of the DEPTH dimensions that a tuple
// addresses, then the highest ones. `first` is the number of the fault of the first dimension; faults.py describes the
// record.

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
