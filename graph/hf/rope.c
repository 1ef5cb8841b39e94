#include "graph/hf/rope.h"

#include <math.h>
#include <string.h>

#include "repops/elementary64.h"
#include "repops/scalar/ops.h"

#define PI 0x1.921fb54442d18p+1

static float power(float base, float exponent) {
    uint32_t a, b;
    float y;
    memcpy(&a, &base, 4);
    memcpy(&b, &exponent, 4);
    a = ree_op_pow_f32(a, b);
    memcpy(&y, &a, 4);
    return y;
}

// Returns theta^(2 i / (2 n)), the wavelength of pair i divided by 2 pi.
static float period(double theta, uint32_t i, uint32_t n) {
    return power((float)theta, (float)(2 * i) / (float)(2 * n));
}

static enum ree_status need_number(const cJSON *parameters, const char *key, double min, double max,
                                   double *out, struct ree_error *err) {
    if (!ree_json_find(parameters, key)) return ree_fail(err, REE_INVALID, "'%s' is missing", key);
    return ree_json_number(parameters, key, min, max, out, err);
}

#define MAX_FACTOR 1e6

static enum ree_status read_linear(const cJSON *parameters, struct ree_rope *rope,
                                   struct ree_error *err) {
    double factor;
    REE_TRY(need_number(parameters, "factor", 1e-3, MAX_FACTOR, &factor, err));
    for (uint32_t i = 0; i < rope->n; i++)
        rope->inv_freq[i] = rope->inv_freq[i] / (float)factor;
    return REE_OK;
}

// Finds the context length that the model was made for before scaling. A value in config.json
// itself, or else the architecture's default, has priority over the rope's parameters.
static enum ree_status read_original(const struct ree_rope_source *source, int64_t *out,
                                     struct ree_error *err) {
    static const char key[] = "original_max_position_embeddings";
    *out = source->context;
    REE_TRY(ree_json_int(source->parameters, key, 1, INT32_MAX, out, err));
    if (source->original) *out = source->original;
    return ree_json_int(source->config, key, 1, INT32_MAX, out, err);
}

// Divides the frequencies of long wavelengths by the factor, leaves short wavelengths unchanged,
// and interpolates between the two.
static enum ree_status read_llama3(const struct ree_rope_source *source, struct ree_rope *rope,
                                   struct ree_error *err) {
    const cJSON *parameters = source->parameters;
    double factor, low, high;
    int64_t original;
    REE_TRY(need_number(parameters, "factor", 1e-3, MAX_FACTOR, &factor, err));
    REE_TRY(need_number(parameters, "low_freq_factor", 1e-3, MAX_FACTOR, &low, err));
    REE_TRY(need_number(parameters, "high_freq_factor", 1e-3, MAX_FACTOR, &high, err));
    REE_TRY(read_original(source, &original, err));
    if (!(low < high))
        return ree_fail(err, REE_INVALID, "low_freq_factor is not below high_freq_factor");
    float low_wavelength = (float)((double)original / low);
    float high_wavelength = (float)((double)original / high);
    for (uint32_t i = 0; i < rope->n; i++) {
        float f = rope->inv_freq[i], wavelength = (float)(2 * PI) / f;
        float scaled = wavelength > low_wavelength ? f / (float)factor : f;
        if (!(wavelength < high_wavelength) && !(wavelength > low_wavelength)) {
            float smooth = ((float)original / wavelength - (float)low) / (float)(high - low);
            scaled = (1 - smooth) * scaled / (float)factor + smooth * scaled;
        }
        rope->inv_freq[i] = scaled;
    }
    return REE_OK;
}

static double yarn_scale(double factor, double m) {
    return factor <= 1 ? 1 : 0.1 * m * ree_exact_log(factor) + 1;
}

// Returns the index, a real number, of the pair that makes `rotations` full rotations within the
// original context.
static double yarn_pair(double rotations, uint32_t n, double theta, double context) {
    return (2.0 * n * ree_exact_log(context / (rotations * 2 * PI))) / (2 * ree_exact_log(theta));
}

static enum ree_status yarn_factor(const cJSON *parameters, double factor, struct ree_rope *rope,
                                   struct ree_error *err) {
    double m = 0, m_all = 0, attention = yarn_scale(factor, 1);
    REE_TRY(ree_json_number(parameters, "mscale", 0, MAX_FACTOR, &m, err));
    REE_TRY(ree_json_number(parameters, "mscale_all_dim", 0, MAX_FACTOR, &m_all, err));
    if (m != 0 && m_all != 0) attention = yarn_scale(factor, m) / yarn_scale(factor, m_all);
    REE_TRY(ree_json_number(parameters, "attention_factor", 1e-6, MAX_FACTOR, &attention, err));
    rope->factor = (float)attention;
    return REE_OK;
}

// Peng and others, "YaRN", 2023.
static enum ree_status read_yarn(const struct ree_rope_source *source, double theta,
                                 struct ree_rope *rope, struct ree_error *err) {
    const cJSON *parameters = source->parameters;
    double fast = 32, slow = 1;
    int64_t original;
    bool truncate = true;
    REE_TRY(ree_json_number(parameters, "beta_fast", 1e-3, MAX_FACTOR, &fast, err));
    REE_TRY(ree_json_number(parameters, "beta_slow", 1e-3, MAX_FACTOR, &slow, err));
    REE_TRY(ree_json_bool(parameters, "truncate", &truncate, err));
    REE_TRY(read_original(source, &original, err));
    double factor = (double)source->context / (double)original;
    REE_TRY(ree_json_number(parameters, "factor", 1e-3, MAX_FACTOR, &factor, err));
    REE_TRY(yarn_factor(parameters, factor, rope, err));
    double low = yarn_pair(fast, rope->n, theta, (double)original);
    double high = yarn_pair(slow, rope->n, theta, (double)original);
    if (truncate) {
        low = floor(low);
        high = ceil(high);
    }
    if (!(low > 0)) low = 0;
    if (high > 2.0 * rope->n - 1) high = 2.0 * rope->n - 1;
    if (low == high) high += 0.001;
    for (uint32_t i = 0; i < rope->n; i++) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        float base = period(theta, i, rope->n), keep = 1 - ramp;
        float extrapolated = 1 / base, interpolated = 1 / ((float)factor * base);
        rope->inv_freq[i] = interpolated * (1 - keep) + extrapolated * keep;
    }
    return REE_OK;
}

// Ding and others, "LongRoPE", 2024. Uses the short factors, which are made for the original
// context. The exported model then has that context length.
static enum ree_status read_longrope(const struct ree_rope_source *source, double theta,
                                     struct ree_rope *rope, struct ree_error *err) {
    const cJSON *parameters = source->parameters, *item;
    const cJSON *list = ree_json_find(parameters, "short_factor");
    int64_t original;
    REE_TRY(read_original(source, &original, err));
    if (!cJSON_IsArray(list) || (uint32_t)cJSON_GetArraySize(list) != rope->n)
        return ree_fail(err, REE_INVALID, "'short_factor' is not a list of %u numbers", rope->n);
    uint32_t i = 0;
    cJSON_ArrayForEach(item, list) {
        double x = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (!isfinite(x) || x < 1e-3 || x > MAX_FACTOR)
            return ree_fail(err, REE_INVALID,
                            "number %u of 'short_factor' is not a number in the supported range",
                            i);
        rope->inv_freq[i] = 1 / ((float)x * period(theta, i, rope->n));
        i++;
    }
    double factor = (double)source->context / (double)original, attention = 1;
    REE_TRY(ree_json_number(parameters, "factor", 1e-3, MAX_FACTOR, &factor, err));
    if (factor > 1) attention = sqrt(1 + ree_exact_log(factor) / ree_exact_log((double)original));
    REE_TRY(ree_json_number(parameters, "attention_factor", 1e-6, MAX_FACTOR, &attention, err));
    rope->factor = (float)attention;
    rope->context = original;
    return REE_OK;
}

static enum ree_status read_scaling(const struct ree_rope_source *source, const char *type,
                                    double theta, struct ree_rope *out, struct ree_error *err) {
    if (!strcmp(type, "default")) return REE_OK;
    if (!strcmp(type, "linear")) return read_linear(source->parameters, out, err);
    if (!strcmp(type, "llama3")) return read_llama3(source, out, err);
    if (!strcmp(type, "yarn")) return read_yarn(source, theta, out, err);
    if (!strcmp(type, "longrope") || !strcmp(type, "su"))
        return read_longrope(source, theta, out, err);
    if (!strcmp(type, "dynamic"))
        return ree_fail(err, REE_UNSUPPORTED,
                        "the type 'dynamic' changes the angles of earlier tokens as a text grows, "
                        "so keys in a cache would be wrong");
    return ree_fail(
        err, REE_UNSUPPORTED,
        "the type '%.32s' is unknown; supported are default, linear, llama3, yarn and longrope",
        type);
}

enum ree_status ree_rope_read(const struct ree_rope_source *source, struct ree_arena *arena,
                              struct ree_rope *out, struct ree_error *err) {
    double theta = source->theta, part = 1;
    const char *type = "default";
    REE_TRY(ree_json_string(source->parameters, "type", &type, err));
    REE_TRY(ree_json_string(source->parameters, "rope_type", &type, err));
    REE_TRY(ree_json_number(source->parameters, "rope_theta", 1.0001, 1e15, &theta, err));
    REE_TRY(ree_json_number(source->config, "partial_rotary_factor", 0, 1, &part, err));
    REE_TRY(ree_json_number(source->parameters, "partial_rotary_factor", 0, 1, &part, err));
    if (!source->partial && part != 1) {
        // If an architecture does not use partial_rotary_factor, transformers ignores it for angles
        // without scaling, and fails for scaled angles.
        if (strcmp(type, "default") != 0)
            return ree_fail(err, REE_UNSUPPORTED,
                            "'partial_rotary_factor' with scaling is not supported in this "
                            "architecture");
        part = 1;
    }
    int64_t dim = (int64_t)((double)source->head_dim * part);
    if (dim < 2 || dim % 2)
        return ree_fail(err, REE_UNSUPPORTED,
                        "%lld of %lld elements of a head are rotated, expected an even number",
                        (long long)dim, (long long)source->head_dim);
    *out = (struct ree_rope){.n = (uint32_t)(dim / 2), .factor = 1};
    out->inv_freq = ree_arena_alloc_array(arena, out->n, sizeof *out->inv_freq);
    if (!out->inv_freq) return ree_no_memory(err);
    for (uint32_t i = 0; i < out->n; i++)
        out->inv_freq[i] = 1 / period(theta, i, out->n);
    if (read_scaling(source, type, theta, out, err) != REE_OK)
        return ree_fail_prefix(err, "rope scaling");
    return REE_OK;
}
