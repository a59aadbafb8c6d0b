// The beginning of every kernel's source. Before the text of a kernel file these are defined, too: LOCAL_0, LOCAL_1 and
// LOCAL_2 (the work group), the file's macros and element types, and its epilogue; see kernel_source.py and chains.py.

// A tensor is passed as a buffer and the offset of its first element, in elements.
#define INPUT(type, name) __global const type* restrict name##_base, const ulong name##_offset
#define OUTPUT(type, name) __global type* restrict name##_base, const ulong name##_offset
#define POINTER(name) (name##_base + name##_offset)

#define KERNEL __kernel __attribute__((reqd_work_group_size(LOCAL_0, LOCAL_1, LOCAL_2)))

#define LOAD_plain(pointer, index) ((pointer)[index])
#define STORE_plain(pointer, index, x) ((pointer)[index] = (x))

// 16-bit floats: every device can load and store them, even if it cannot compute with them. NOTE: only these functions
// are portable: strict compilers reject *to = *from for a half*, and also storing an int, since the conversion would be
// ambiguous.
#define LOAD_half(pointer, index) vload_half(index, pointer)
#define STORE_half(pointer, index, x) vstore_half_rte((float)(x), index, pointer)

#define LOAD_bfloat16(pointer, index) as_float((uint)(pointer)[index] << 16)
#define STORE_bfloat16(pointer, index, x) ((pointer)[index] = bfloat16_of(x))

// Round to nearest, ties to even; NaN stays NaN.
static inline ushort bfloat16_of(const float x) {
    const uint bits = as_uint(x);
    return isnan(x) ? (ushort)((bits >> 16) | 0x40u) : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float rounded_to_bfloat16(const float x) { return as_float((uint)bfloat16_of(x) << 16); }

static inline float rounded_to_half(const float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half*)&bits);
    return vload_half(0, (const half*)&bits);
}

// Unaligned vectors. NOTE: vloadn is avoided if possible: PoCL may call its built-in functions instead of inlining
// them, and a call in a loop spills every register.
#ifdef __clang__
#define UNALIGNED(T, bytes)                                       \
    typedef T##2 unaligned_##T##2 __attribute__((aligned(bytes))); \
    typedef T##4 unaligned_##T##4 __attribute__((aligned(bytes))); \
    typedef T##8 unaligned_##T##8 __attribute__((aligned(bytes)));
UNALIGNED(float, 4)
UNALIGNED(uint, 4)
UNALIGNED(ulong, 8)
UNALIGNED(ushort, 2)
#ifdef cl_khr_fp64
UNALIGNED(double, 8)
#endif
#define LOAD_VECTOR(T, width, pointer) (*(__global const unaligned_##T##width*)(pointer))
#define STORE_VECTOR(T, width, vector, pointer) (*(__global unaligned_##T##width*)(pointer) = (vector))
#else
#define LOAD_VECTOR(T, width, pointer) vload##width(0, pointer)
#define STORE_VECTOR(T, width, vector, pointer) vstore##width(vector, 0, pointer)
#endif
