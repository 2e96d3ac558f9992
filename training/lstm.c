/* One step of an LSTM over many sentences, forward and backward: gates and cells in float32, what lies between steps in
   bfloat16. A row holds the gates of one sentence in the order input, forget, cell, output. */
#include <stdint.h>
#include <string.h>

typedef uint16_t low; /* a bfloat16: the upper half of a float32 */

static inline float widen(low bits) {
    const uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline low narrow(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return (low)((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
}

/* e to the power of value to about 1e-6: whole powers of 2 by the exponent's bits, the rest by Taylor's series. */
static inline float exponential(float value) {
    float power = value * 1.44269504f;
    power = power < -120.0f ? -120.0f : power;
    power = power > 120.0f ? 120.0f : power;
    const int32_t whole = (int32_t)(power + 128.5f) - 128;
    const float rest = (power - (float)whole) * 0.693147181f;
    const float series =
        1.0f + rest * (1.0f + rest * (0.5f + rest * (0.16666667f + rest * (0.041666667f + rest * 0.0083333333f))));
    const int32_t bits = (whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return series * scale;
}

static inline float sigmoid(float value) { return 1.0f / (1.0f + exponential(-value)); }
static inline float hyperbolic(float value) { return 2.0f / (1.0f + exponential(-2.0f * value)) - 1.0f; }

/* gates (rows, 4 * hidden): the inputs' part, and afterwards the activations; product: the part of the states before. */
void forward(int64_t rows, int64_t hidden, low *gates, const low *product, const float *before, float *after, low *states) {
    for (int64_t row = 0; row < rows; ++row) {
        low *restrict i = gates + row * 4 * hidden, *restrict f = i + hidden, *restrict v = f + hidden,
            *restrict o = v + hidden;
        const low *restrict pi = product + row * 4 * hidden, *restrict pf = pi + hidden, *restrict pv = pf + hidden,
                  *restrict po = pv + hidden;
        const float *restrict b = before + row * hidden;
        float *restrict a = after + row * hidden;
        low *restrict s = states + row * hidden;
#pragma GCC ivdep /* else gcc 12 makes no vectors */
        for (int64_t unit = 0; unit < hidden; ++unit) {
            const float input = sigmoid(widen(i[unit]) + widen(pi[unit]));
            const float forget = sigmoid(widen(f[unit]) + widen(pf[unit]));
            const float value = hyperbolic(widen(v[unit]) + widen(pv[unit]));
            const float output = sigmoid(widen(o[unit]) + widen(po[unit]));
            const float cell = forget * b[unit] + input * value;
            a[unit] = cell;
            s[unit] = narrow(output * hyperbolic(cell));
            i[unit] = narrow(input);
            f[unit] = narrow(forget);
            v[unit] = narrow(value);
            o[unit] = narrow(output);
        }
    }
}

/* activations, before, after: what forward left; wanted and product (rows, hidden): the loss's slope at the states, from
   above and from the word after; memory: that at the cells, in and out. Writes the slope at the gates. */
void backward(int64_t rows, int64_t hidden, const low *activations, const float *before, const float *after,
              const low *wanted, const low *product, float *memory, low *slopes) {
    for (int64_t row = 0; row < rows; ++row) {
        const low *restrict i = activations + row * 4 * hidden, *restrict f = i + hidden, *restrict v = f + hidden,
                  *restrict o = v + hidden;
        low *restrict di = slopes + row * 4 * hidden, *restrict df = di + hidden, *restrict dv = df + hidden,
            *restrict d_o = dv + hidden;
        const float *restrict b = before + row * hidden, *restrict a = after + row * hidden;
        const low *restrict u = wanted + row * hidden, *restrict p = product + row * hidden;
        float *restrict m = memory + row * hidden;
#pragma GCC ivdep /* else gcc 12 makes no vectors */
        for (int64_t unit = 0; unit < hidden; ++unit) {
            const float input = widen(i[unit]), forget = widen(f[unit]), value = widen(v[unit]), output = widen(o[unit]);
            const float squashed = hyperbolic(a[unit]);
            const float state = widen(u[unit]) + widen(p[unit]);
            const float cell = m[unit] + state * output * (1.0f - squashed * squashed);
            di[unit] = narrow(cell * value * input * (1.0f - input));
            df[unit] = narrow(cell * b[unit] * forget * (1.0f - forget));
            dv[unit] = narrow(cell * input * (1.0f - value * value));
            d_o[unit] = narrow(state * squashed * output * (1.0f - output));
            m[unit] = cell * forget;
        }
    }
}
