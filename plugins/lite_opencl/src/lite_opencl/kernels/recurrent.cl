// LSTM, GRU and RNN: all steps of a sequence in one kernel. The inputs of all steps have already been multiplied by
// their weights in one matrix product.
//
// A work group runs one sequence in one direction; dimension 1 counts sequences, dimension 2 directions. A work item
// computes all gates of UNITS neighbouring hidden units, VECTORS vectors of WIDTH. Weights are packed as [hidden state,
// gate, unit], so that those that multiply the same hidden state are neighbours. The last block of units ends with the
// last unit and may overlap its neighbour, so both compute the same units. The results of a step are therefore stored
// apart from the states that it reads, and both are swapped after each step.
//
// `state` holds for each sequence and direction [2, STATES, hidden] (the hidden state and the cell before and after a
// step), and for a GRU that resets before the product also [2, hidden] (the update gate, and the reset hidden state).

#define UNITS (VECTORS * WIDTH)

// **** activation functions of a vector and two parameters ****

#define ACT_RELU(x, a, b) ((x) < (SUM_VECTOR)0 ? (SUM_VECTOR)0 : (x))
#define ACT_TANH(x, a, b) tanh(x)
// The logistic function is computed by tanh, because exp would overflow.
#define ACT_SIGMOID(x, a, b) ((SUM)0.5f * tanh((SUM)0.5f * (x)) + (SUM)0.5f)
#define ACT_SOFTSIGN(x, a, b) ((x) / ((SUM)1 + fabs(x)))
#define ACT_SOFTPLUS(x, a, b) (ACT_RELU(x, a, b) + log1p(exp(-fabs(x))))
#define ACT_AFFINE(x, a, b) ((SUM)(a) * (x) + (SUM)(b))
#define ACT_LEAKYRELU(x, a, b) ((x) >= (SUM_VECTOR)0 ? (x) : (SUM)(a) * (x))
// NaN fails the comparison and stays NaN.
#define ACT_THRESHOLDEDRELU(x, a, b) ((x) <= (SUM_VECTOR)(SUM)(a) ? (SUM_VECTOR)0 : (x))
#define ACT_SCALEDTANH(x, a, b) ((SUM)(a) * tanh((SUM)(b) * (x)))
#define ACT_HARDSIGMOID(x, a, b) limited((SUM)(a) * (x) + (SUM)(b), 0, 1)
#define ACT_ELU(x, a, b) ((x) >= (SUM_VECTOR)0 ? (x) : (SUM)(a) * expm1(x))

// Clamp numbers; NaN stays NaN.
static inline SUM_VECTOR limited(const SUM_VECTOR x, const SUM low, const SUM high) {
    const SUM_VECTOR raised = x < (SUM_VECTOR)low ? (SUM_VECTOR)low : x;
    return raised > (SUM_VECTOR)high ? (SUM_VECTOR)high : raised;
}

#ifdef CLIP
#define CLIPPED(x) limited(x, -(SUM)CLIP, (SUM)CLIP)
#else
#define CLIPPED(x) (x)
#endif

// FUNCTION_0(x), FUNCTION_1(x) and FUNCTION_2(x) are the operator's activation functions with their parameters.
static inline SUM_VECTOR gate(const SUM_VECTOR x) { return FUNCTION_0(CLIPPED(x)); }
#ifdef LSTM
static inline SUM_VECTOR output(const SUM_VECTOR x) { return FUNCTION_2(CLIPPED(x)); }
#endif
#ifndef RNN
static inline SUM_VECTOR candidate(const SUM_VECTOR x) { return FUNCTION_1(CLIPPED(x)); }
#endif

// **** vectors of hidden units ****

#define STORE_LANES(store, pointer, index, x)                                                     \
    {                                                                                             \
        union {                                                                                   \
            SUM_VECTOR vector;                                                                    \
            SUM lanes[WIDTH];                                                                     \
        } stored;                                                                                 \
        stored.vector = x;                                                                        \
        for (int lane = 0; lane < WIDTH; ++lane) store(pointer, (index) + lane, stored.lanes[lane]); \
    }

// sums[i][j] += state @ weights, for COUNT gates from FIRST on.
#define MULTIPLY(sums, state, weights, FIRST, COUNT)                                              \
    for (int k = 0; k < hidden; ++k) {                                                            \
        const SUM value = (state)[k];                                                             \
        _Pragma("unroll") for (int i = 0; i < COUNT; ++i) {                                       \
            _Pragma("unroll") for (int j = 0; j < VECTORS; ++j)                                   \
                sums[i][j] += value * LOAD_R_VECTOR(weights, (k * GATES + FIRST + i) * hidden + first + j * WIDTH); \
        }                                                                                         \
    }

KERNEL void recurrent(OUTPUT(S_TYPE, state), INPUT(P_TYPE, projected), INPUT(R_TYPE, weights),
#ifdef HAS_BIAS
                      INPUT(B_TYPE, bias), const int bias_direction,
#endif
#ifdef HAS_LENGTHS
                      INPUT(int, lengths),
#endif
#ifdef HAS_H
                      INPUT(H_TYPE, initial_h), const int initial_h_direction, const int initial_h_batch,
#endif
#ifdef HAS_C
                      INPUT(C_TYPE, initial_c), const int initial_c_direction, const int initial_c_batch,
#endif
#ifdef HAS_PEEPHOLES
                      INPUT(O_TYPE, peepholes),
#endif
#ifdef HAS_Y
                      OUTPUT(Y_TYPE, y), const int y_step, const int y_direction, const int y_batch,
#endif
#ifdef HAS_Y_H
                      OUTPUT(YH_TYPE, y_h), const int y_h_direction, const int y_h_batch,
#endif
#ifdef HAS_Y_C
                      OUTPUT(YC_TYPE, y_c), const int y_c_direction, const int y_c_batch,
#endif
                      const int steps, const int hidden, const int directions, const int projected_step,
                      const int projected_batch, const int first_direction, const int reversed_from) {
    const int batch = get_group_id(1);
    const int direction = first_direction + (int)get_group_id(2);
    const bool is_backwards = direction >= reversed_from;
#ifdef HAS_LENGTHS
    const int length = clamp(POINTER(lengths)[batch], 0, steps);
#else
    const int length = steps;
#endif
    __global S_TYPE* before = POINTER(state) + (batch * directions + direction) * STATE_ROWS * hidden;
    __global S_TYPE* after = before + STATES * hidden;
#if defined(GRU) && !defined(LINEAR_BEFORE_RESET)
    __global S_TYPE* updates = after + STATES * hidden;
    __global S_TYPE* resets = updates + hidden;
#endif
    __global const R_TYPE* own_weights = POINTER(weights) + direction * hidden * GATES * hidden;

    for (int u = get_local_id(0); u < hidden; u += LOCAL_0) {
#ifdef HAS_H
        before[u] = LOAD_H(POINTER(initial_h), direction * initial_h_direction + batch * initial_h_batch + u);
#else
        before[u] = 0;
#endif
#ifdef LSTM
#ifdef HAS_C
        before[hidden + u] = LOAD_C(POINTER(initial_c), direction * initial_c_direction + batch * initial_c_batch + u);
#else
        before[hidden + u] = 0;
#endif
#endif
#ifdef HAS_Y
        // Steps after the end of the sequence are zero.
        for (int t = length; t < steps; ++t) {
            STORE_Y(POINTER(y), t * y_step + direction * y_direction + batch * y_batch + u, (SUM)0);
        }
#endif
    }
    barrier(CLK_GLOBAL_MEM_FENCE);

    for (int step = 0; step < length; ++step) {
        const int t = is_backwards ? length - 1 - step : step;
        __global const P_TYPE* inputs = POINTER(projected) + t * projected_step + batch * projected_batch +
                                       direction * GATES * hidden;
        for (int block = (int)get_local_id(0) * UNITS; block < hidden; block += LOCAL_0 * UNITS) {
            const int first = min(block, hidden - UNITS);
            SUM_VECTOR sums[GATES][VECTORS];
#pragma unroll
            for (int i = 0; i < GATES; ++i) {
#pragma unroll
                for (int j = 0; j < VECTORS; ++j) {
#ifdef HAS_BIAS
                    sums[i][j] = LOAD_B_VECTOR(POINTER(bias), direction * bias_direction + i * hidden + first + j * WIDTH);
#else
                    sums[i][j] = 0;
#endif
                }
            }
#if defined(GRU) && !defined(LINEAR_BEFORE_RESET)
            MULTIPLY(sums, before, own_weights, 0, 2)
#else
            MULTIPLY(sums, before, own_weights, 0, GATES)
#endif
#pragma unroll
            for (int j = 0; j < VECTORS; ++j) {
                const int unit = first + j * WIDTH;
#define PROJECTED(i) LOAD_P_VECTOR(inputs, (i) * hidden + unit)
#if defined(LSTM)
                const SUM_VECTOR cell = LOAD_S_VECTOR(before, hidden + unit);
                SUM_VECTOR in = sums[0][j] + PROJECTED(0), out = sums[1][j] + PROJECTED(1);
                SUM_VECTOR forget = sums[2][j] + PROJECTED(2);
#ifdef HAS_PEEPHOLES
#define PEEPHOLE(i) LOAD_O_VECTOR(POINTER(peepholes), (direction * 3 + (i)) * hidden + unit)
                in += PEEPHOLE(0) * cell;
                forget += PEEPHOLE(2) * cell;
#endif
                in = gate(in);
#ifdef INPUT_FORGET
                forget = (SUM)1 - in;
#else
                forget = gate(forget);
#endif
                const SUM_VECTOR next = forget * cell + in * candidate(sums[3][j] + PROJECTED(3));
#ifdef HAS_PEEPHOLES
                out += PEEPHOLE(1) * next;
#endif
                const SUM_VECTOR new_state = gate(out) * output(next);
                STORE_LANES(STORE_S, after, hidden + unit, next)
#elif defined(GRU)
                const SUM_VECTOR update = gate(sums[0][j] + PROJECTED(0)), reset = gate(sums[1][j] + PROJECTED(1));
                const SUM_VECTOR old = LOAD_S_VECTOR(before, unit);
#ifdef LINEAR_BEFORE_RESET
                const SUM_VECTOR fresh = candidate(PROJECTED(2) + reset * sums[2][j]);
                const SUM_VECTOR new_state = ((SUM)1 - update) * fresh + update * old;
#else
                STORE_LANES(STORE_S, updates, unit, update)
                STORE_LANES(STORE_S, resets, unit, reset * old)
#endif
#else
                const SUM_VECTOR new_state = gate(sums[0][j] + PROJECTED(0));
#endif
#if !defined(GRU) || defined(LINEAR_BEFORE_RESET)
                STORE_LANES(STORE_S, after, unit, new_state)
#ifdef HAS_Y
                const int y_index = t * y_step + direction * y_direction + batch * y_batch + unit;
                STORE_LANES(STORE_Y, POINTER(y), y_index, new_state)
#endif
#endif
            }
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
#if defined(GRU) && !defined(LINEAR_BEFORE_RESET)
        // The reset hidden state of all units is complete, so their candidates can be computed.
        for (int block = (int)get_local_id(0) * UNITS; block < hidden; block += LOCAL_0 * UNITS) {
            const int first = min(block, hidden - UNITS);
            SUM_VECTOR sums[1][VECTORS];
#pragma unroll
            for (int j = 0; j < VECTORS; ++j) {
#ifdef HAS_BIAS
                sums[0][j] = LOAD_B_VECTOR(POINTER(bias), direction * bias_direction + 2 * hidden + first + j * WIDTH);
#else
                sums[0][j] = 0;
#endif
            }
            MULTIPLY(sums, resets, own_weights, 2, 1)
#pragma unroll
            for (int j = 0; j < VECTORS; ++j) {
                const int unit = first + j * WIDTH;
                const SUM_VECTOR update = LOAD_S_VECTOR(updates, unit), old = LOAD_S_VECTOR(before, unit);
                const SUM_VECTOR new_state = ((SUM)1 - update) * candidate(sums[0][j] + PROJECTED(2)) + update * old;
                STORE_LANES(STORE_S, after, unit, new_state)
#ifdef HAS_Y
                const int y_index = t * y_step + direction * y_direction + batch * y_batch + unit;
                STORE_LANES(STORE_Y, POINTER(y), y_index, new_state)
#endif
            }
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
#endif
        __global S_TYPE* swapped = before;
        before = after;
        after = swapped;
    }

    for (int u = get_local_id(0); u < hidden; u += LOCAL_0) {
#ifdef HAS_Y_H
        STORE_YH(POINTER(y_h), direction * y_h_direction + batch * y_h_batch + u, before[u]);
#endif
#ifdef HAS_Y_C
        STORE_YC(POINTER(y_c), direction * y_c_direction + batch * y_c_batch + u, before[hidden + u]);
#endif
    }
}
