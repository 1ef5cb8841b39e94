// MelWeightMatrix: triangular filters, evenly spaced on the mel scale. The host computes the table.
#include "graph/lower/ops/data.h"
#include "graph/lower/ops/signal/real.h"

#include <math.h>

#define LN10 0x1.26bb1bbb55516p+1
// maximum number of weights in the table; the host's memory holds all of it
#define MAX_WEIGHTS (INT64_C(1) << 26)

struct mel {
    int64_t n_bins, dft_length, sample_rate;
    double low, high; // in hertz
};

static enum ree_status read_edge(struct ree_lower *lower, struct ree_view *t, const char *name,
                                 double *out) {
    float value;
    REE_TRY(ree_lower_cast(lower, t, REE_F32, &t));
    REE_TRY(ree_lower_host_float(lower, t, name, &value));
    if (!(value >= 0 && value <= 1e9f))
        return ree_lower_fail(lower, REE_INVALID, "%s is %g, expected 0 or more hertz", name,
                              (double)value);
    *out = (double)value;
    return REE_OK;
}

static enum ree_status read_count(struct ree_lower *lower, struct ree_view *t, const char *name,
                                  int64_t low, int64_t *out) {
    REE_TRY(ree_data_int(lower, t, name, out));
    if (*out >= low && *out < INT32_MAX) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "%s is %lld, expected %lld or more", name,
                          (long long)*out, (long long)low);
}

static double to_mel(double hertz) {
    return 2595 * ree_real_log(1 + hertz / 700) / LN10;
}

// The spectrogram bin that contains edge i. Triangle i has the edges i, i + 1 and i + 2.
static double edge_bin(const struct mel *m, int64_t i) {
    double low = to_mel(m->low), step = (to_mel(m->high) - low) / (double)(m->n_bins + 2);
    double mel = (double)i * step + low;
    double hertz = 700 * (ree_real_exp(mel / 2595 * LN10) - 1);
    return floor((double)(m->dft_length + 1) * hertz / (double)m->sample_rate);
}

// Writes column i of the table (n_rows, n_bins): it rises over [left, centre] and falls over
// [centre, right).
static void fill_triangle(const struct mel *m, int64_t i, const int64_t edge[3], float *table) {
    int64_t left = edge[0], centre = edge[1], right = edge[2];
    for (int64_t j = left; j <= centre; j++)
        table[j * m->n_bins + i] =
            left == centre ? 1 : (float)((double)(j - left) / (double)(centre - left));
    for (int64_t j = centre; j < right; j++)
        table[j * m->n_bins + i] = (float)((double)(right - j) / (double)(right - centre));
}

enum ree_status ree_lower_op_mel_weight_matrix(struct ree_lower *lower, struct ree_view *const *in,
                                               struct ree_view **out) {
    struct mel m;
    REE_TRY(read_count(lower, in[0], "num_mel_bins", 1, &m.n_bins));
    REE_TRY(read_count(lower, in[1], "dft_length", 1, &m.dft_length));
    REE_TRY(read_count(lower, in[2], "sample_rate", 1, &m.sample_rate));
    REE_TRY(read_edge(lower, in[3], "lower_edge_hertz", &m.low));
    REE_TRY(read_edge(lower, in[4], "upper_edge_hertz", &m.high));
    if (m.high < m.low)
        return ree_lower_fail(lower, REE_INVALID,
                              "upper_edge_hertz is %g, below lower_edge_hertz, %g", m.high, m.low);
    int64_t rows = m.dft_length / 2 + 1, dims[2] = {rows, m.n_bins}, count;
    if (!ree_count_elements(2, dims, &count) || count > MAX_WEIGHTS)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a table of %lld x %lld weights; at most %lld are supported",
                              (long long)rows, (long long)m.n_bins, (long long)MAX_WEIGHTS);
    float *table = ree_arena_alloc_array(lower->arena, (size_t)count, sizeof *table);
    if (!table) return ree_lower_no_memory(lower);
    int64_t edge[3] = {0};
    for (int64_t i = 0; i < m.n_bins + 2; i++) {
        // Every triangle must end within the spectrogram. The end of the last one is exclusive, so
        // it may be `rows`.
        double at = edge_bin(&m, i);
        if (at < 0) at = 0; // rounding can make an edge at 0 Hz negative
        if (at > (double)(i == m.n_bins + 1 ? rows : rows - 1))
            return ree_lower_fail(lower, REE_INVALID,
                                  "upper_edge_hertz is %g, which is above the %lld bins of a "
                                  "spectrogram of %lld samples at %lld hertz",
                                  m.high, (long long)rows, (long long)m.dft_length,
                                  (long long)m.sample_rate);
        edge[0] = edge[1];
        edge[1] = edge[2];
        edge[2] = (int64_t)at;
        if (i >= 2) fill_triangle(&m, i - 2, edge, table);
    }
    REE_TRY(ree_lower_literal(lower, REE_F32, 2, dims, table, &out[0]));
    int64_t dtype = ree_rule_int(lower, "output_datatype", REE_F32);
    return ree_lower_cast(lower, out[0], (enum ree_dtype)dtype, &out[0]);
}
