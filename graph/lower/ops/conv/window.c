// Reads the attributes of windows and computes sizes of outputs (window.h). All sizes are below
// 2^31, so the products of two fit in 64 bits.
#include "graph/lower/ops/conv/window.h"

#include <string.h>

static enum ree_status check_range(struct ree_lower *lower, const char *name, size_t i,
                                   int64_t value, int64_t low) {
    if (value >= low && value <= INT32_MAX) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "%s[%zu] is %lld, expected %lld or more%s", name, i,
                          (long long)value, (long long)low,
                          value > low ? " and less than 2^31" : "");
}

enum ree_status ree_window_list(struct ree_lower *lower, const struct ree_window *w,
                                const char *name, int64_t low, int64_t fallback, int64_t *out,
                                bool *out_given) {
    size_t n;
    const int64_t *values = ree_rule_ints(lower, name, &n);
    if (out_given) *out_given = n > 0;
    for (uint32_t i = 0; i < w->n; i++)
        out[w->first + i] = fallback;
    if (n == 0) return REE_OK;
    if (n != w->n)
        return ree_lower_fail(lower, REE_INVALID, "%s has %zu entries, expected %u", name, n, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        REE_TRY(check_range(lower, name, i, values[i], low));
        out[w->first + i] = values[i];
    }
    return REE_OK;
}

static enum ree_status read_pads(struct ree_lower *lower, struct ree_window *w) {
    size_t n;
    const int64_t *pads = ree_rule_ints(lower, "pads", &n);
    if (n == 0) return REE_OK;
    if (n != 2 * w->n)
        return ree_lower_fail(lower, REE_INVALID, "pads has %zu entries, expected %u", n, 2 * w->n);
    for (size_t i = 0; i < n; i++)
        REE_TRY(check_range(lower, "pads", i, pads[i], 0));
    if (w->auto_pad != REE_PAD_NOTSET) return REE_OK;
    for (uint32_t i = 0; i < w->n; i++) {
        w->pad_begin[w->first + i] = pads[i];
        w->pad_end[w->first + i] = pads[w->n + i];
    }
    return REE_OK;
}

static enum ree_status read_auto_pad(struct ree_lower *lower, enum ree_auto_pad *out) {
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char *name = ree_rule_string(lower, "auto_pad", "NOTSET");
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i])) continue;
        *out = (enum ree_auto_pad)i;
        return REE_OK;
    }
    return ree_lower_fail(lower, REE_INVALID,
                          "auto_pad is '%s', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER",
                          name);
}

static enum ree_status read_kernel(struct ree_lower *lower, const struct ree_view *weights,
                                   struct ree_window *w) {
    bool given;
    REE_TRY(ree_window_list(lower, w, "kernel_shape", 1, 0, w->kernel, &given));
    if (!given && !weights)
        return ree_lower_fail(lower, REE_INVALID, "attribute 'kernel_shape' is missing");
    for (uint32_t i = 0; weights && i < w->n; i++) {
        int64_t *kernel = &w->kernel[w->first + i], size = weights->dims[2 + i];
        if (given && *kernel != size)
            return ree_lower_fail(lower, REE_INVALID,
                                  "kernel_shape[%u] is %lld, but W has size %lld along this axis",
                                  i, (long long)*kernel, (long long)size);
        if (size == 0)
            return ree_lower_fail(lower, REE_INVALID, "W has size 0 along axis %u", 2 + i);
        *kernel = size;
    }
    return REE_OK;
}

// Checks empty tensors as well: one could declare 2^40 positions of zero channels.
static enum ree_status check_sizes(struct ree_lower *lower, const struct ree_window *w) {
    for (uint32_t i = w->first; i < REE_WINDOW_DIMS; i++)
        if (w->in[i] > INT32_MAX || w->kernel[i] > INT32_MAX)
            return ree_lower_fail(lower, REE_UNSUPPORTED, "2^31 positions or more along axis %u",
                                  2 + i - w->first);
    return REE_OK;
}

enum ree_status ree_window_read(struct ree_lower *lower, const struct ree_view *x,
                                const struct ree_view *weights, struct ree_window *w) {
    memset(w, 0, sizeof *w);
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 2 + REE_WINDOW_DIMS));
    w->n = x->rank - 2;
    w->first = REE_WINDOW_DIMS - w->n;
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++)
        w->in[i] = w->kernel[i] = w->out[i] = w->stride[i] = w->dilation[i] = w->extent[i] = 1;
    for (uint32_t i = 0; i < w->n; i++)
        w->in[w->first + i] = x->dims[2 + i];
    REE_TRY(read_kernel(lower, weights, w));
    REE_TRY(check_sizes(lower, w));
    REE_TRY(ree_window_list(lower, w, "strides", 1, 1, w->stride, NULL));
    REE_TRY(ree_window_list(lower, w, "dilations", 1, 1, w->dilation, NULL));
    REE_TRY(read_auto_pad(lower, &w->auto_pad));
    REE_TRY(read_pads(lower, w));
    for (uint32_t i = 0; i < REE_WINDOW_DIMS; i++)
        w->extent[i] = (w->kernel[i] - 1) * w->dilation[i] + 1;
    return REE_OK;
}

// Kernels compute positions in 32 bits; the largest position is after the last window.
static enum ree_status check_reach(struct ree_lower *lower, const struct ree_window *w,
                                   uint32_t i) {
    int64_t reach =
        w->in[i] + w->pad_begin[i] + w->pad_end[i] + w->extent[i] + w->stride[i] + w->out[i];
    if (reach <= INT32_MAX) return REE_OK;
    return ree_lower_fail(lower, REE_UNSUPPORTED,
                          "the window reaches 2^31 positions or more along axis %u",
                          2 + i - w->first);
}

enum ree_status ree_window_forward(struct ree_lower *lower, struct ree_window *w, bool ceil_mode) {
    for (uint32_t i = w->first; i < REE_WINDOW_DIMS; i++) {
        if (w->auto_pad == REE_PAD_SAME_UPPER || w->auto_pad == REE_PAD_SAME_LOWER) {
            w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
            int64_t total = (w->out[i] - 1) * w->stride[i] + w->extent[i] - w->in[i];
            if (total < 0) total = 0;
            int64_t less = total / 2;
            w->pad_begin[i] = w->auto_pad == REE_PAD_SAME_UPPER ? less : total - less;
            w->pad_end[i] = total - w->pad_begin[i];
        } else {
            int64_t padded = w->in[i] + w->pad_begin[i] + w->pad_end[i];
            int64_t span = padded - w->extent[i];
            if (span < 0)
                return ree_lower_fail(
                    lower, REE_INVALID,
                    "the kernel spans %lld along axis %u, but the padded input has %lld",
                    (long long)w->extent[i], 2 + i - w->first, (long long)padded);
            w->out[i] = (ceil_mode ? span + w->stride[i] - 1 : span) / w->stride[i] + 1;
            // A window that would start in the padding after the input does not count.
            if (ceil_mode && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->pad_begin[i])
                w->out[i]--;
        }
        REE_TRY(check_reach(lower, w, i));
    }
    return REE_OK;
}

enum ree_status ree_window_transposed(struct ree_lower *lower, struct ree_window *w) {
    int64_t extra[REE_WINDOW_DIMS] = {0}, shape[REE_WINDOW_DIMS] = {0};
    bool shaped;
    REE_TRY(ree_window_list(lower, w, "output_padding", 0, 0, extra, NULL));
    REE_TRY(ree_window_list(lower, w, "output_shape", 1, 0, shape, &shaped));
    bool same = w->auto_pad == REE_PAD_SAME_UPPER || w->auto_pad == REE_PAD_SAME_LOWER;
    for (uint32_t i = w->first; i < REE_WINDOW_DIMS; i++) {
        if (w->in[i] == 0)
            return ree_lower_fail(lower, REE_INVALID, "X has size 0 along axis %u",
                                  2 + i - w->first);
        int64_t full = (w->in[i] - 1) * w->stride[i] + extra[i] + w->extent[i];
        if (shaped || same) {
            w->out[i] = shaped ? shape[i] : w->in[i] * w->stride[i];
            int64_t total = full > w->out[i] ? full - w->out[i] : 0, less = total / 2;
            w->pad_begin[i] = w->auto_pad == REE_PAD_SAME_UPPER ? less : total - less;
            w->pad_end[i] = total - w->pad_begin[i];
        } else {
            w->out[i] = full - w->pad_begin[i] - w->pad_end[i];
        }
        if (w->out[i] < 1)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the padding leaves an output of size %lld along axis %u",
                                  (long long)w->out[i], 2 + i - w->first);
        REE_TRY(check_reach(lower, w, i));
    }
    return REE_OK;
}
