// STFT: multiplies overlapping frames of a signal by a window and transforms each. The frames are a
// strided view of the signal, so the samples that they share are not copied.
#include "graph/lower/ops/signal/fourier.h"

struct frames {
    int64_t length, step, n;
};

static enum ree_status read_frames(struct ree_lower *lower, struct ree_view *const *in,
                                   struct frames *f) {
    const struct ree_view *signal = in[0];
    struct ree_view *window = ree_rule_input(lower, in, 2), *length = ree_rule_input(lower, in, 3);
    char text[128];
    int64_t samples = signal->dims[1];
    f->length = window && window->rank == 1 ? window->dims[0] : samples;
    if (length) REE_TRY(ree_data_int(lower, length, "frame_length", &f->length));
    REE_TRY(ree_data_int(lower, in[1], "frame_step", &f->step));
    if (window &&
        (window->dtype != signal->dtype || window->rank != 1 || window->dims[0] != f->length))
        return ree_lower_fail(lower, REE_INVALID, "window is %s, expected %s[%lld]",
                              ree_view_text(window, text, sizeof text),
                              ree_dtype_name(signal->dtype), (long long)f->length);
    if (f->step < 1 || f->step > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "frame_step is %lld, expected 1 or more",
                              (long long)f->step);
    if (f->length < 1 || f->length > samples || f->length > REE_FOURIER_MAX_LENGTH)
        return ree_lower_fail(lower, REE_INVALID,
                              "frame_length is %lld, expected 1 to the signal's %lld samples",
                              (long long)f->length, (long long)samples);
    f->n = (samples - f->length) / f->step + 1;
    return REE_OK;
}

enum ree_status ree_lower_op_stft(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    struct ree_view *signal = in[0], *window = ree_rule_input(lower, in, 2), *frames;
    struct frames f;
    char text[128];
    bool onesided = ree_rule_int(lower, "onesided", 1) != 0;
    REE_TRY(ree_rule_require_float(lower, signal));
    if (signal->rank == 2) { // real signals may omit their last axis
        int64_t dims[3] = {signal->dims[0], signal->dims[1], 1};
        REE_TRY(ree_lower_reshape(lower, signal, 3, dims, &signal));
    }
    if (signal->rank != 3 || (signal->dims[2] != 1 && signal->dims[2] != 2))
        return ree_lower_fail(lower, REE_INVALID,
                              "the signal is %s, expected (batch, samples, 1 or 2)",
                              ree_view_text(signal, text, sizeof text));
    struct ree_view *inputs[4] = {signal, in[1], window, ree_rule_input(lower, in, 3)};
    REE_TRY(read_frames(lower, inputs, &f));
    int64_t batch = signal->dims[0], parts = signal->dims[2];
    if (onesided && parts == 2)
        return ree_lower_fail(lower, REE_INVALID, "onesided is not defined for a complex signal");
    int64_t n_out = onesided ? f.length / 2 + 1 : f.length;

    frames = ree_lower_view(lower, signal);
    if (!frames) return ree_lower_no_memory(lower);
    frames->rank = 4;
    int64_t dims[4] = {batch, f.n, f.length, parts}, count;
    int64_t strides[4] = {signal->strides[0], f.step * signal->strides[1], signal->strides[1],
                          signal->strides[2]};
    if (!ree_count_elements(4, dims, &count) || count >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%lld frames of %lld samples", (long long)f.n,
                              (long long)f.length);
    for (uint32_t i = 0; i < 4; i++) {
        frames->dims[i] = dims[i];
        frames->strides[i] = strides[i];
    }
    if (window) {
        REE_TRY(ree_lower_reshape(lower, window, 2, (int64_t[]){f.length, 1}, &window));
        REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, frames, window, &frames));
    }
    REE_TRY(
        ree_lower_reshape(lower, frames, 3, (int64_t[]){batch * f.n, f.length, parts}, &frames));
    REE_TRY(ree_fourier(lower, frames, f.length, false, n_out, &frames));
    return ree_lower_reshape(lower, frames, 4, (int64_t[]){batch, f.n, n_out, 2}, &out[0]);
}
