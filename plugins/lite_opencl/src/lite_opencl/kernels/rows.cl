// Operations on whole rows: reductions, and normalizations by the result of a reduction.
//
// A tensor is walked by outer and inner rows, and by outer and inner columns: four sizes, and four strides for each
// tensor. A reduction has one or two passes over all columns of a row; the terms of the second pass depend on the
// result of the first, as a variance depends on the mean.
//
// A vector has LANES neighbours, which is fast on a processor; on GPUs LANES is 1. With ALONG they are columns of one
// row, else neighbouring rows. SLICES work items share a row, each taking every SLICES-th of its columns, and join
// their parts in a tree in local memory; on processors SLICES is 1, so that there is no barrier. A work group has
// GROUP_ROWS rows, or vectors of rows. Neighbouring work items access neighbouring memory: slices with ALONG, rows
// otherwise. Dimension 1 counts outer rows.
//
// ACC is the type that is computed in, START the initial value of the first pass.

// **** vectors of LANES elements ****

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#if LANES == 1
#define VECTOR(type) type
#define CONVERT(type, x) ((type)(x))
#define VLOAD_plain(type, pointer) LOAD_plain(pointer, 0)
#define VLOAD_half(type, pointer) LOAD_half(pointer, 0)
#define VLOAD_bfloat16(type, pointer) LOAD_bfloat16(pointer, 0)
#define UNALIGNED_plain(name)
#else
#define VECTOR(type) PASTE(type, LANES)
#define CONVERT(type, x) PASTE(PASTE(convert_, type), LANES)(x)
#ifdef __clang__
// NOTE: not vloadn, which PoCL calls as a function.
#define UNALIGNED_plain(name) \
    typedef VECTOR(name##_TYPE) unaligned_##name __attribute__((aligned(sizeof(name##_TYPE))));
#define VLOAD_plain(type, pointer) (*(__global const unaligned_##type*)(pointer))
#else
#define UNALIGNED_plain(name)
#define VLOAD_plain(type, pointer) PASTE(vload, LANES)(0, pointer)
#endif
#define VLOAD_half(type, pointer) PASTE(vload_half, LANES)(0, pointer)
#define VLOAD_bfloat16(type, pointer) \
    PASTE(as_float, LANES)(PASTE(convert_uint, LANES)(PASTE(vload, LANES)(0, pointer)) << 16)
#endif
#define UNALIGNED_half(name)
#define UNALIGNED_bfloat16(name)

// The lanes of a vector that is a variable.
#define LANES_OF(type, vector) ((type*)&(vector))

typedef VECTOR(X_COMPUTE) values;
typedef VECTOR(ACC) numbers;

// The larger and the smaller of two vectors, element by element; NaN if either is NaN.
#define LARGER(a, b) ((((a) != (a)) | ((a) >= (b))) ? (a) : (b))
#define SMALLER(a, b) ((((a) != (a)) | ((a) <= (b))) ? (a) : (b))
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))

#if LANES > 1 && defined(SINGLE)
// e to the power of x, within 2 ULP; PoCL's exp takes three times as long. x = n * log(2) + rest with a rest of at most
// log(2) / 2, for which the Taylor series up to x^7 is precise enough. NaN stays NaN.
static inline numbers power_of_e(numbers x) {
    // Beyond these limits the results are 0 and infinity.
    x = x < -104.0f ? (numbers)-104.0f : x;
    x = x > 89.0f ? (numbers)89.0f : x;
    // Adding this number to another moves that number's integer part to the lowest bits.
    const float integers = 12582912.0f;
    const numbers shifted = x * 1.44269504f + integers;
    const VECTOR(int) n = PASTE(as_int, LANES)(shifted) - as_int(integers);
    const numbers whole = shifted - integers;
    // log(2) in two parts, the first with few bits, so that its product is exact.
    const numbers rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    numbers sum = (numbers)(1.0f / 5040);
    sum = sum * rest + 1.0f / 720;
    sum = sum * rest + 1.0f / 120;
    sum = sum * rest + 1.0f / 24;
    sum = sum * rest + 1.0f / 6;
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    // 2^n as two factors, since it may be beyond the range of normal numbers.
    const VECTOR(int) part = n >> 1;
    const numbers low = PASTE(as_float, LANES)((part + 127) << 23);
    const numbers high = PASTE(as_float, LANES)((n - part + 127) << 23);
    return sum * low * high;
}
#else
#define power_of_e(x) exp(x)
#endif

// **** operations ****
// FIRST and SECOND: the term of an element x in each pass. JOIN_FIRST: joins terms of the first pass; terms of the
// second pass are added. MEAN_FIRST, FINITE_FIRST: transform the result of the first pass before the second. REDUCED:
// the result of a reduction, one number for each row. FACTOR, MAPPED: the factor of a row, and the result of an
// element, of a normalization.

#define ELEMENT CONVERT(ACC, x)

#if defined(ReduceSum)
#define FIRST ELEMENT
#define REDUCED first
#elif defined(ReduceMean)
#define FIRST ELEMENT
#define REDUCED MEAN(first)
#elif defined(ReduceProd)
#define FIRST ELEMENT
#define JOIN_FIRST TIMES
#define REDUCED first
#elif defined(ReduceMax)
#define FIRST ELEMENT
#define JOIN_FIRST LARGER
#define REDUCED first
#elif defined(ReduceMin)
#define FIRST ELEMENT
#define JOIN_FIRST SMALLER
#define REDUCED first
#elif defined(ReduceL1)
#define FIRST MAGNITUDE
#define REDUCED first
#elif defined(ReduceL2)
#define FIRST (ELEMENT * ELEMENT)
#define REDUCED sqrt(first)
#elif defined(ReduceLp)
#define FIRST pow(MAGNITUDE, (numbers)POWER)
#define REDUCED pow(first, 1 / (ACC)POWER)
#elif defined(ReduceSumSquare)
#define FIRST (ELEMENT * ELEMENT)
#define REDUCED first
#elif defined(ReduceLogSum)
#define FIRST ELEMENT
#define REDUCED log(first)
#elif defined(ReduceLogSumExp)
// The largest element is subtracted, so that no power overflows, unless it is infinite: the difference would be NaN.
#define FIRST ELEMENT
#define JOIN_FIRST LARGER
#define FINITE_FIRST
#define SECOND power_of_e(ELEMENT - first)
#define REDUCED (log(second) + first)
#elif defined(Softmax)
#define FIRST ELEMENT
#define JOIN_FIRST LARGER
#define SECOND power_of_e(ELEMENT - first)
#define FACTOR (1 / second)
#define MAPPED (power_of_e(ELEMENT - first) * factor)
#elif defined(LogSoftmax)
#define FIRST ELEMENT
#define JOIN_FIRST LARGER
#define SECOND power_of_e(ELEMENT - first)
#define FACTOR log(second)
#define MAPPED ((ELEMENT - first) - factor)
#elif defined(Standardize)
// By mean and variance. In two passes: "mean of squares - square of mean" would lose all digits with a large mean.
#define FIRST ELEMENT
#define MEAN_FIRST
#define SECOND ((ELEMENT - first) * (ELEMENT - first))
#define FACTOR (1 / sqrt(second / count + epsilon))
#define MAPPED ((ELEMENT - first) * factor)
#elif defined(MeanVariance)
#define FIRST ELEMENT
#define MEAN_FIRST
#define SECOND ((ELEMENT - first) * (ELEMENT - first))
#define FACTOR (sqrt(second / count) + epsilon)
#define MAPPED ((ELEMENT - first) / factor)
#elif defined(ByNorm1)
#define FIRST MAGNITUDE
#define FACTOR (first == 0 ? (numbers)1 : first)
#define MAPPED (ELEMENT / factor)
#elif defined(ByNorm2)
#define FIRST (ELEMENT * ELEMENT)
#define FACTOR (first == 0 ? (numbers)1 : sqrt(first))
#define MAPPED (ELEMENT / factor)
#endif

#ifndef JOIN_FIRST
#define JOIN_FIRST PLUS
#endif

#ifdef FLOATING
#define MAGNITUDE fabs(ELEMENT)
#define MEAN(sum) ((sum) / (ACC)count)
#else
#define MAGNITUDE CONVERT(ACC, abs(x))
// The sum is unsigned, since it may wrap around. The quotient is truncated; the mean of no elements is 0.
#define MEAN(sum) (count == 0 ? 0 : (WIDE)(sum) / (WIDE)max(count, 1))
#endif

enum { FIRST_PASS, SECOND_PASS };

static inline numbers term(const int pass, const values x, const numbers first) {
#ifdef SECOND
    if (pass == SECOND_PASS) return SECOND;
#endif
    return FIRST;
}

static inline numbers joined(const int pass, const numbers a, const numbers b) {
    return pass == FIRST_PASS ? JOIN_FIRST(a, b) : a + b;
}

static inline ACC joined_lanes(const int pass, const ACC a, const ACC b) {
    return pass == FIRST_PASS ? JOIN_FIRST(a, b) : a + b;
}

// **** addressing ****

#define STRIDES(name) \
    const int name##_outer_row, const int name##_row, const int name##_outer_column, const int name##_column

// Strides of neighbouring columns and rows are constants if they are 0 or 1: COLUMN_x is 0, 1 or x_column.
#ifdef ALONG
#define LANE(name) COLUMN_##name
#define ADVANCE LANES
#else
#define LANE(name) ROW_##name
#define ADVANCE 1
#endif

// Load `count` elements that are `lane` apart; the other lanes are undefined. NAME is the name of the tensor's types.
#define DEFINE_LOAD(NAME)                                                                      \
    PASTE(UNALIGNED_, NAME##_KIND)(NAME)                                                       \
    static inline VECTOR(NAME##_COMPUTE)                                                       \
        load_##NAME(__global const NAME##_TYPE* from, const int lane, const int count) {       \
        if (lane == 1 && count == LANES) return PASTE(VLOAD_, NAME##_KIND)(NAME, from);        \
        VECTOR(NAME##_COMPUTE) result;                                                         \
        for (int u = 0; u < LANES; ++u) {                                                      \
            LANES_OF(NAME##_COMPUTE, result)[u] = LOAD_##NAME(from, min(u, count - 1) * lane); \
        }                                                                                      \
        return result;                                                                         \
    }

DEFINE_LOAD(X)

// Join all lanes, and return the result in each of them.
static inline numbers folded(const int pass, numbers total) {
    ACC* lanes = LANES_OF(ACC, total);
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        for (int u = 0; u < distance; ++u) lanes[u] = joined_lanes(pass, lanes[u], lanes[u + distance]);
    }
    return (numbers)lanes[0];
}

// Join the terms of columns from `begin` on to a part of the result, as far as they fill vectors of `count` lanes.
static inline numbers part_of(const int pass, numbers part, const numbers first, __global const X_TYPE* from,
                              const int begin, const int end, const int x_column, const int x_row, const int count) {
    for (int column = begin; column + ADVANCE <= end; column += SLICES * ADVANCE) {
        part = joined(pass, part, term(pass, load_X(from + column * COLUMN_x, LANE(x), count), first));
    }
    return part;
}

// Sums are computed in blocks, so that the rounding errors of long rows do not accumulate.
#define BLOCK (128 * ADVANCE * SLICES)

// One pass over a row, or over up to LANES rows. All work items of a group must call this together. NOTE: always
// inlined: PoCL 3.0 gives each of its threads a separate local array only if the kernel itself uses it. When this
// function was called twice and thus not inlined, all threads wrote to the same array.
static inline __attribute__((always_inline)) numbers
reduced(const int pass, const numbers first, __global const X_TYPE* x, const int outer_columns, const int columns,
        const int x_outer_column, const int x_column, const int x_row, const int rows_used, const int slice,
        __local ACC* partials) {
    const ACC start = pass == FIRST_PASS ? (ACC)START : (ACC)0;
    numbers total = (numbers)start;
    for (int outer = 0; outer < outer_columns; ++outer) {
        __global const X_TYPE* from = x + outer * x_outer_column;
        for (int block = 0; block < columns; block += BLOCK) {
            const int begin = block + slice * ADVANCE, end = min(block + BLOCK, columns);
            numbers part = (numbers)start;
#ifdef ALONG
            part = part_of(pass, part, first, from, begin, end, x_column, x_row, LANES);
#else
            // With a constant count, whole vectors are loaded at once.
            if (rows_used == LANES) {
                part = part_of(pass, part, first, from, begin, end, x_column, x_row, LANES);
            } else {
                part = part_of(pass, part, first, from, begin, end, x_column, x_row, rows_used);
            }
#endif
            total = joined(pass, total, part);
        }
#if defined(ALONG) && LANES > 1
        const int remainder = columns % LANES;
        if (remainder > 0) {
            const values x_rest = load_X(from + (columns - remainder) * COLUMN_x, LANE(x), remainder);
            numbers terms = term(pass, x_rest, first);
            for (int u = remainder; u < LANES; ++u) LANES_OF(ACC, terms)[u] = start;
            total = joined(pass, total, terms);
        }
#endif
    }
#ifdef ALONG
    total = folded(pass, total);
#endif
#if SLICES > 1
#ifdef ALONG
    const int apart = 1;
#else
    const int apart = GROUP_ROWS;
#endif
    __local ACC* mine = partials + get_local_id(0);
    *mine = total;
    for (int distance = SLICES / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice < distance) *mine = joined(pass, *mine, mine[distance * apart]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    total = mine[-slice * apart];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    return total;
}

#if SLICES > 1
#define PARTIALS __local ACC partials[LOCAL_0]
#else
#define PARTIALS __local ACC* partials = 0
#endif

// The rows of a work item, and its slice of them. Work items beyond the last row only take part in barriers.
#ifdef ALONG
#define OWN_ROWS                                                                  \
    const int slice = (int)get_local_id(0) % SLICES;                              \
    const int own = get_group_id(0) * GROUP_ROWS + (int)get_local_id(0) / SLICES; \
    const bool is_row = own < rows;                                               \
    const int row = min(own, rows - 1);                                           \
    const int rows_used = 1
#else
#define OWN_ROWS                                                                                \
    const int slice = (int)get_local_id(0) / GROUP_ROWS;                                        \
    const int own = (get_group_id(0) * GROUP_ROWS + (int)get_local_id(0) % GROUP_ROWS) * LANES; \
    const bool is_row = own < rows;                                                             \
    const int row = min(own, rows - 1);                                                         \
    const int rows_used = min(LANES, rows - row)
#endif

#define AT_ROW(name) (POINTER(name) + outer_row * name##_outer_row + row * name##_row)

#define FIRST_SUM                                                                                                  \
    OWN_ROWS;                                                                                                      \
    PARTIALS;                                                                                                      \
    const int outer_row = get_global_id(1), count = outer_columns * columns;                                       \
    __global const X_TYPE* from = AT_ROW(x);                                                                       \
    numbers first = reduced(FIRST_PASS, (numbers)0, from, outer_columns, columns, x_outer_column, x_column, x_row, \
                            rows_used, slice, partials)

#if defined(MEAN_FIRST)
#define BEFORE_SECOND first = first / (ACC)count
#elif defined(FINITE_FIRST)
#define BEFORE_SECOND first = isfinite(first) ? first : (numbers)0
#else
#define BEFORE_SECOND
#endif

#ifdef SECOND
#define SECOND_SUM                                                                                       \
    numbers second = reduced(SECOND_PASS, first, from, outer_columns, columns, x_outer_column, x_column, \
                             x_row, rows_used, slice, partials)
#else
#define SECOND_SUM
#endif

// **** reductions ****
// The result is dense: [outer rows, rows].

#ifdef REDUCED
static inline WIDE result_of(const ACC first, const ACC second, const int count) { return REDUCED; }

KERNEL void reduce_rows(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x), const int rows, const int outer_columns,
                        const int columns, STRIDES(x) EPILOGUE_PARAMETERS) {
    FIRST_SUM;
    BEFORE_SECOND;
#ifdef SECOND
    SECOND_SUM;
#else
    numbers second = first;
#endif
    if (is_row && slice == 0) {
        for (int u = 0; u < rows_used; ++u) {
            const WIDE result = result_of(LANES_OF(ACC, first)[u], LANES_OF(ACC, second)[u], count);
            const int index = outer_row * rows + row + u;
            STORE_Y(POINTER(y), index, EPILOGUE(result, index, 0));
        }
    }
}
#endif

// **** normalizations ****

#ifdef MAPPED
#ifdef ALONG
#define ROW_OF(lane) (outer_row * rows + row)
#define COLUMN_OF(lane) (outer * columns + column + (lane))
#else
#define ROW_OF(lane) (outer_row * rows + row + (lane))
#define COLUMN_OF(lane) (outer * columns + column)
#endif

// Store `count` elements that are `lane` apart.
static inline void store_y(__global Y_TYPE* y, const int lane, const int count, numbers result) {
#if LANES > 1 && defined(Y_IS_PLAIN)
    if (lane == 1 && count == LANES) {
        PASTE(vstore, LANES)(CONVERT(Y_TYPE, result), 0, y);
        return;
    }
#endif
    for (int u = 0; u < count; ++u) STORE_Y(y, u * lane, LANES_OF(ACC, result)[u]);
}

#ifdef HAS_SCALE
DEFINE_LOAD(SCALE)
#endif
#ifdef HAS_BIAS
DEFINE_LOAD(BIAS)
#endif

KERNEL void normalize_rows(OUTPUT(Y_TYPE, y), INPUT(X_TYPE, x),
#ifdef HAS_SCALE
                           INPUT(SCALE_TYPE, scale),
#endif
#ifdef HAS_BIAS
                           INPUT(BIAS_TYPE, bias),
#endif
#ifdef HAS_MEANS
                           OUTPUT(MEANS_TYPE, means), OUTPUT(FACTORS_TYPE, factors),
#endif
                           const int rows, const int outer_columns, const int columns, const ACC epsilon, STRIDES(y),
                           STRIDES(x)
#ifdef HAS_SCALE
                           , STRIDES(scale)
#endif
#ifdef HAS_BIAS
                           , STRIDES(bias)
#endif
                           EPILOGUE_PARAMETERS) {
    FIRST_SUM;
    BEFORE_SECOND;
    SECOND_SUM;
    if (!is_row) return;
    numbers factor = FACTOR;
#ifdef HAS_MEANS
    if (slice == 0) {
        for (int u = 0; u < rows_used; ++u) {
            STORE_MEANS(POINTER(means), outer_row * rows + row + u, LANES_OF(ACC, first)[u]);
            STORE_FACTORS(POINTER(factors), outer_row * rows + row + u, LANES_OF(ACC, factor)[u]);
        }
    }
#endif
    for (int outer = 0; outer < outer_columns; ++outer) {
        for (int column = slice * ADVANCE; column < columns; column += SLICES * ADVANCE) {
#ifdef ALONG
            const int used = min(LANES, columns - column);
#else
            const int used = rows_used;
#endif
#define AT(name) (AT_ROW(name) + outer * name##_outer_column + column * COLUMN_##name)
            const values x = load_X(AT(x), LANE(x), used);
            numbers result = MAPPED;
#ifdef HAS_SCALE
            result *= CONVERT(ACC, load_SCALE(AT(scale), LANE(scale), used));
#endif
#ifdef HAS_BIAS
            result += CONVERT(ACC, load_BIAS(AT(bias), LANE(bias), used));
#endif
#ifdef HAS_TAIL
            __global Y_TYPE* to = AT(y);
            for (int u = 0; u < used; ++u) {
                STORE_Y(to, u * LANE(y), EPILOGUE(LANES_OF(ACC, result)[u], ROW_OF(u), COLUMN_OF(u)));
            }
#else
            store_y(AT(y), LANE(y), used, result);
#endif
        }
    }
}
#endif
