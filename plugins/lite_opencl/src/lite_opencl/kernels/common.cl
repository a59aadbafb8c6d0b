// What every kernel begins with. Defined before the text of a kernel: LOCAL_0, LOCAL_1 and LOCAL_2 (the work group),
// the file's own defines and element types, and its epilogue; see kernel_source.py and chains.py.

// A tensor is a buffer and the number of elements before its first one.
#define INPUT(type, name) __global const type* restrict name##_base, const ulong name##_offset
#define OUTPUT(type, name) __global type* restrict name##_base, const ulong name##_offset
#define POINTER(name) (name##_base + name##_offset)

#define KERNEL __kernel __attribute__((reqd_work_group_size(LOCAL_0, LOCAL_1, LOCAL_2)))

#define LOAD_plain(pointer, index) ((pointer)[index])
#define STORE_plain(pointer, index, x) ((pointer)[index] = (x))

// 16-bit floats: every device can load and store them, even where it cannot compute with them. NOTE: by these only:
// *to = *from is an error of strict compilers where from is a half*, as is storing an int, which could become two types.
#define LOAD_half(pointer, index) vload_half(index, pointer)
#define STORE_half(pointer, index, x) vstore_half_rte((float)(x), index, pointer)

#define LOAD_bfloat16(pointer, index) as_float((uint)(pointer)[index] << 16)
#define STORE_bfloat16(pointer, index, x) ((pointer)[index] = bfloat16_of(x))

// Rounded to the nearest, ties to even; a NaN stays one.
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

// Vectors whose elements lie anywhere. NOTE: not vloadn where it can be helped: PoCL calls its built-in functions when
// it cannot compile them into a kernel, and a call in a loop spills every register.
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
