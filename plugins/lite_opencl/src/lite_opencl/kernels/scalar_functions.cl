// Functions of element-wise operators that OpenCL C does not have, for each type that a kernel computes in.

// The larger and the smaller of two numbers; NaN if either is NaN.
#define SCALAR_FUNCTIONS(T)                                                                                   \
    static inline T larger_##T(const T a, const T b) { return (a != a || a >= b) ? a : b; }                   \
    static inline T smaller_##T(const T a, const T b) { return (a != a || a <= b) ? a : b; }

#define FLOATING_FUNCTIONS(T)                                                                                 \
    static inline T limited_##T(const T x) { return smaller_##T(larger_##T(x, (T)0), (T)1); }                 \
    static inline T softplus_##T(const T x) { return larger_##T(x, (T)0) + log1p(exp(-fabs(x))); }            \
    static inline T sigmoid_##T(const T x) { return (T)1 / ((T)1 + exp(-x)); }                                \
    static inline T sign_##T(const T x) { return isnan(x) ? x : (T)((x > 0) - (x < 0)); }                     \
    /* The remainder with the sign of the divisor. */                                                         \
    static inline T modulo_##T(const T a, const T b) {                                                        \
        const T remainder = fmod(a, b);                                                                       \
        if (remainder == 0) return copysign(remainder, b);                                                    \
        return (remainder < 0) != (b < 0) ? remainder + b : remainder;                                        \
    }

// Integers wrap around. NOTE: computed in U, an unsigned type of at least 32 bits: in C, overflow of signed types is
// undefined, and smaller types are computed in int.
#define WRAPPING_FUNCTIONS(T, U)                                                                              \
    static inline T add_##T(const T a, const T b) { return (T)((U)a + (U)b); }                                \
    static inline T subtract_##T(const T a, const T b) { return (T)((U)a - (U)b); }                           \
    static inline T multiply_##T(const T a, const T b) { return (T)((U)a * (U)b); }                           \
    /* By repeated squaring. A negative exponent returns the truncated reciprocal: 0 except for 1 and -1. */  \
    static inline T power_##T(const T x, const long exponent) {                                               \
        if (exponent < 0) return x == 1 ? 1 : x == (T)-1 && (T)-1 < (T)1 ? ((exponent & 1) ? x : 1) : 0;      \
        U result = 1, square = (U)x;                                                                          \
        for (ulong left = exponent; left; left >>= 1, square *= square) {                                     \
            if (left & 1) result *= square;                                                                   \
        }                                                                                                     \
        return (T)result;                                                                                     \
    }

// Division truncates towards zero; division by zero returns 0. LOWEST / -1 wraps around.
#define SIGNED_FUNCTIONS(T, U)                                                                                \
    static inline T safe_divisor_##T(const T b) { return b == 0 || b == -1 ? 1 : b; }                         \
    static inline T divide_##T(const T a, const T b) {                                                        \
        return b == 0 ? 0 : b == -1 ? (T)(0 - (U)a) : (T)(a / safe_divisor_##T(b));                              \
    }                                                                                                         \
    static inline T fmod_##T(const T a, const T b) {                                                          \
        return b == 0 || b == -1 ? 0 : (T)(a % safe_divisor_##T(b));                                          \
    }                                                                                                         \
    static inline T modulo_##T(const T a, const T b) {                                                        \
        const T remainder = fmod_##T(a, b);                                                                   \
        return remainder != 0 && (remainder < 0) != (b < 0) ? (T)(remainder + b) : remainder;                 \
    }                                                                                                         \
    static inline T absolute_##T(const T x) { return x < 0 ? (T)(0 - (U)x) : x; }                             \
    static inline T sign_##T(const T x) { return (T)((x > 0) - (x < 0)); }                                    \
    WRAPPING_FUNCTIONS(T, U)

#define UNSIGNED_FUNCTIONS(T, U)                                                                              \
    static inline T divide_##T(const T a, const T b) { return b == 0 ? 0 : (T)(a / (b == 0 ? 1 : b)); }       \
    static inline T fmod_##T(const T a, const T b) { return b == 0 ? 0 : (T)(a % (b == 0 ? 1 : b)); }         \
    static inline T modulo_##T(const T a, const T b) { return fmod_##T(a, b); }                               \
    static inline T absolute_##T(const T x) { return x; }                                                     \
    static inline T sign_##T(const T x) { return (T)(x > 0); }                                                \
    WRAPPING_FUNCTIONS(T, U)
