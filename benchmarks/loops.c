/* Hand-vectorised on-line passes: what the compiled loops of linmax are measured against.
 *
 * One pass over the rows: predict, look at the label, update. Perceptron and Balanced Winnow, for CSR rows
 * and for dense rows, k <= 24 classes. Weights are class-minor, W[feature][lanes], so that one vector
 * instruction serves several classes (lanes is k rounded up to 2, 8 or 24); feature 0 is the constant 1 and attribute f of the data is feature
 * f + 1. The smallest class wins a tie, and an update happens when w.z <= 0 against the best wrong class
 * (so on a tie too). Each function writes every prediction and returns the number of mistakes.
 *
 * Vector extensions of GCC 12 or later and of Clang: no intrinsics, any CPU.
 *     cc -O3 -march=native -fPIC -shared loops.c -o loops.so -lm
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define MOST_CLASSES 24
#define AHEAD 16 /* nonzeros; the caller pads `index` by as many */
#define FAR 256  /* nonzeros; only fetched, so that what lies beyond the end does no harm */

typedef double v2 __attribute__((vector_size(16), aligned(8), may_alias));
/* As wide as the registers: GCC keeps wider vectors in memory, and the pass then takes two to three times as long. */
#ifdef __AVX512F__
#define WIDE 8
#define NUMBERS {0, 1, 2, 3, 4, 5, 6, 7}
#else
#define WIDE 4
#define NUMBERS {0, 1, 2, 3}
#endif
typedef double wide __attribute__((vector_size(8 * WIDE), aligned(8), may_alias));
typedef int64_t whole __attribute__((vector_size(8 * WIDE), aligned(8), may_alias));

enum rule { PERCEPTRON, BALANCED_WINNOW, BALANCED_WINNOW_LIBM };

/* `index` is NULL for dense rows, `start` then unused; everything else is shared by both kinds */
struct rows {
    int64_t trials, width;
    const int64_t *start;
    const int32_t *index;
    const double *value;
    const int32_t *label;
};

struct learner {
    int32_t k;
    double *weight, *exponent; /* exponent: s, only for Balanced Winnow, weight = 2 sinh(rate * s) */
    double rate;
};

INLINE whole bits(wide x) { return (whole)x; }
INLINE wide blend(whole mask, wide yes, wide no) { return (wide)((mask & bits(yes)) | (~mask & bits(no))); }
INLINE wide all(double x) { return x - (wide){0}; } /* -0.0 stays what it is */
INLINE int64_t feature(const int32_t *index, int64_t i) { return index ? (int64_t)index[i] + 1 : i + 1; }

/* 2 sinh(x) lane by lane, odd to the last bit, relative error about 1e-15, |x| < 700.
 * With m = exp(|x|) - 1:  2 sinh |x| = m + m / (m + 1). */
INLINE wide twice_sinh(wide x)
{
    const whole sign = bits(x) & bits(all(-0.0));
    const wide size = (wide)(bits(x) ^ sign);
    const wide shifter = all(0x1.8p52);
    const wide shifted = size * 0x1.71547652b82fep0 + shifter; /* 1 / ln 2 */
    const wide turns = shifted - shifter;
    const wide rest = size - turns * 0x1.62e42fefa39efp-1 - turns * 0x1.abc9e3b39803fp-56; /* ln 2 in two parts */
    wide sum = all(1.0 / 6227020800.0); /* exp(rest) - 1 by its series, |rest| <= ln(2) / 2 */
    sum = sum * rest + 1.0 / 479001600.0;
    sum = sum * rest + 1.0 / 39916800.0;
    sum = sum * rest + 1.0 / 3628800.0;
    sum = sum * rest + 1.0 / 362880.0;
    sum = sum * rest + 1.0 / 40320.0;
    sum = sum * rest + 1.0 / 5040.0;
    sum = sum * rest + 1.0 / 720.0;
    sum = sum * rest + 1.0 / 120.0;
    sum = sum * rest + 1.0 / 24.0;
    sum = sum * rest + 1.0 / 6.0;
    sum = sum * rest + 0.5;
    sum = sum * rest * rest + rest;
    const wide power = (wide)((bits(shifted) - bits(shifter) + 1023) << 52);
    const wide less_one = sum * power + (power - 1.0);
    return (wide)(bits(less_one + less_one / (less_one + 1.0)) | sign);
}

/* NAME: score[c] = sum over the features of value * W[feature][c], as BLOCKS vectors of LANES classes.
 * WAYS independent sums hide the latency of the additions. The weights of a feature some way ahead are
 * fetched meanwhile; near the end of a row these belong to the next row. */
#define SCORES(NAME, VECTOR, LANES, BLOCKS, WAYS)                                                              \
    INLINE void NAME(const double *W, int64_t count, const int32_t *index, const double *value, double *score) \
    {                                                                                                          \
        VECTOR sum[WAYS][BLOCKS] = {{{0}}};                                                                    \
        for (int b = 0; b < BLOCKS; b++)                                                                       \
            sum[0][b] = *(const VECTOR *)(W + LANES * b); /* the constant attribute */                         \
        int64_t i = 0;                                                                                         \
        for (; i + WAYS <= count; i += WAYS) {                                                                 \
            if (LANES * BLOCKS <= 8) { /* with more classes the weights, not the rows, are what we wait for */  \
                __builtin_prefetch(value + i + FAR);                                                           \
                if (index)                                                                                     \
                    __builtin_prefetch(index + i + FAR);                                                       \
            }                                                                                                  \
            for (int way = 0; way < WAYS; way++) {                                                             \
                const double *row = W + feature(index, i + way) * (LANES * BLOCKS);                            \
                const double *ahead = W + feature(index, i + way + AHEAD) * (LANES * BLOCKS);                  \
                for (int c = 0; index && c < LANES * BLOCKS; c += 8)                                           \
                    __builtin_prefetch(ahead + c);                                                             \
                for (int b = 0; b < BLOCKS; b++)                                                               \
                    sum[way][b] += value[i + way] * *(const VECTOR *)(row + LANES * b);                        \
            }                                                                                                  \
        }                                                                                                      \
        for (; i < count; i++)                                                                                 \
            for (int b = 0; b < BLOCKS; b++)                                                                   \
                sum[0][b] += value[i] * *(const VECTOR *)(W + feature(index, i) * (LANES * BLOCKS) + LANES * b); \
        for (int way = 1; way < WAYS; way++)                                                                   \
            for (int b = 0; b < BLOCKS; b++)                                                                   \
                sum[0][b] += sum[way][b];                                                                      \
        for (int b = 0; b < BLOCKS; b++)                                                                       \
            *(VECTOR *)(score + LANES * b) = sum[0][b];                                                        \
    }

SCORES(scores_2, v2, 2, 1, 4)
SCORES(scores_8, wide, WIDE, 8 / WIDE, 4)
SCORES(scores_24, wide, WIDE, 24 / WIDE, 2)

/* The best class but `label`, the smallest of equals. */
INLINE int32_t best_wrong(const double *score, int32_t k, int32_t label, int blocks)
{
    const whole lane = NUMBERS;
    wide block[MOST_CLASSES / WIDE], most = all(-INFINITY);
    for (int b = 0; b < blocks; b++) {
        const whole here = lane + WIDE * b;
        block[b] = blend((here == (int64_t)label) | (here >= (int64_t)k), all(-INFINITY), ((const wide *)score)[b]);
        most = blend(block[b] > most, block[b], most);
    }
    double best = most[0];
    for (int j = 1; j < WIDE; j++)
        best = most[j] > best ? most[j] : best;
    int64_t rival = 0;
    for (int b = blocks - 1; b >= 0; b--) {
        const whole equal = block[b] == all(best);
        for (int j = WIDE - 1; j >= 0; j--)
            rival = equal[j] ? WIDE * b + j : rival;
    }
    return (int32_t)rival;
}

INLINE void step_perceptron(const struct learner *to, int64_t count, const int32_t *index, const double *value,
                            int32_t label, int32_t rival, int lanes)
{
    to->weight[label] += 1.0;
    to->weight[rival] -= 1.0;
    for (int64_t i = 0; i < count; i++) {
        double *row = to->weight + feature(index, i) * lanes;
        row[label] += value[i];
        row[rival] -= value[i];
    }
}

/* s[label] += value and s[rival] -= value for up to WIDE features at once, then their weights */
INLINE void step_some(const struct learner *to, int filled, const int64_t *place, const double *value,
                       int32_t label, int32_t rival, enum rule rule)
{
    wide up = all(0.0), down = all(0.0);
    for (int j = 0; j < filled; j++) {
        double *s = to->exponent + place[j];
        up[j] = s[label] += value[j];
        down[j] = s[rival] -= value[j];
    }
    if (rule == BALANCED_WINNOW_LIBM) {
        for (int j = 0; j < filled; j++) {
            up[j] = 2.0 * sinh(to->rate * up[j]);
            down[j] = 2.0 * sinh(to->rate * down[j]);
        }
    } else {
        up = twice_sinh(to->rate * up);
        down = twice_sinh(to->rate * down);
    }
    for (int j = 0; j < filled; j++) {
        to->weight[place[j] + label] = up[j];
        to->weight[place[j] + rival] = down[j];
    }
}

INLINE void step_winnow(const struct learner *to, int64_t count, const int32_t *index, const double *value,
                        int32_t label, int32_t rival, enum rule rule, int lanes)
{
    int64_t place[WIDE] = {0}; /* the constant attribute */
    double amount[WIDE] = {1.0};
    int filled = 1;
    for (int64_t i = 0; i < count; i++) {
        if (!index && value[i] == 0.0)
            continue;
        if (index) { /* prediction did not read the exponents: fetch those some way ahead */
            const double *ahead = to->exponent + feature(index, i + AHEAD / 2) * lanes;
            __builtin_prefetch(ahead + label);
            __builtin_prefetch(ahead + rival);
        }
        place[filled] = feature(index, i) * lanes;
        amount[filled++] = value[i];
        if (filled == WIDE) {
            step_some(to, WIDE, place, amount, label, rival, rule);
            filled = 0;
        }
    }
    step_some(to, filled, place, amount, label, rival, rule);
}

/* lanes is 2, 8 or 24, a constant wherever this is inlined */
INLINE int64_t pass(const struct rows *rows, const struct learner *to, int32_t *prediction, enum rule rule,
                    int sparse, int lanes)
{
    int64_t mistakes = 0;
    double score[MOST_CLASSES] __attribute__((aligned(64))) = {0};
    for (int64_t t = 0; t < rows->trials; t++) {
        const int64_t start = sparse ? rows->start[t] : t * rows->width;
        const int64_t count = sparse ? rows->start[t + 1] - start : rows->width;
        const int32_t *index = sparse ? rows->index + start : NULL;
        const double *value = rows->value + start;
        const int32_t label = rows->label[t];
        if (lanes == 2)
            scores_2(to->weight, count, index, value, score);
        else if (lanes == 8)
            scores_8(to->weight, count, index, value, score);
        else
            scores_24(to->weight, count, index, value, score);
        const int32_t rival = lanes == 2 ? 1 - label : best_wrong(score, to->k, label, (lanes + WIDE - 1) / WIDE);
        const double margin = score[label] - score[rival];
        const int wrong = margin < 0.0 || (margin == 0.0 && rival < label);
        prediction[t] = wrong ? rival : label;
        mistakes += wrong;
        if (margin <= 0.0) {
            if (rule == PERCEPTRON)
                step_perceptron(to, count, index, value, label, rival, lanes);
            else
                step_winnow(to, count, index, value, label, rival, rule, lanes);
        }
    }
    return mistakes;
}

#define PASS(NAME, RULE, SPARSE, LANES)                                                                        \
    int64_t NAME##_##LANES(const struct rows *rows, const struct learner *to, int32_t *prediction)             \
    {                                                                                                          \
        return pass(rows, to, prediction, RULE, SPARSE, LANES);                                                \
    }
#define PASSES(NAME, RULE, SPARSE)                                                                             \
    PASS(NAME, RULE, SPARSE, 2)                                                                                \
    PASS(NAME, RULE, SPARSE, 8)                                                                                \
    PASS(NAME, RULE, SPARSE, 24)

PASSES(perceptron_sparse, PERCEPTRON, 1)
PASSES(perceptron_dense, PERCEPTRON, 0)
PASSES(balanced_winnow_sparse, BALANCED_WINNOW, 1)
PASSES(balanced_winnow_dense, BALANCED_WINNOW, 0)
PASSES(balanced_winnow_libm_sparse, BALANCED_WINNOW_LIBM, 1)
PASSES(balanced_winnow_libm_dense, BALANCED_WINNOW_LIBM, 0)
