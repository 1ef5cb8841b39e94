// Device tensors: a run that reads inputs from them and writes outputs to them gives the bits of a
// run with host memory, whichever of the inputs and outputs they are, and states stay on the device
// from run to run.
//
//     session_device_tensors [DEVICE]
#include <string.h>

#include "graph/model_text.h"
#include "ree.h"
#include "session/observe.h"
#include "test.h"

// All ways in which an output can lie: computed, as two outputs, an input, a constant, a view with
// strides or an offset, an earlier segment's result (the shape of `found` depends on data), a shape
// from an input's data, types of one and of eight bytes, none of its elements.
static const char all_ways[] =
    "opset 17 (x:float32[3,n], w:float32[3,n], to:int64[2]) -> (sum, again, same, fixed, turned,"
    "  part, found, shaped, less, place, nothing, bits) {"
    "  two = Constant() {value=<float32[3] 2 2 3>} three = Constant() {value=<float32[3] 3 -3 3>}"
    "  sum = Add(x, w) again = Identity(sum) same = Identity(w) fixed = Mul(two, three)"
    "  turned = Transpose(sum) {perm=[1,0]}"
    "  one = Constant() {value=<int64[1] 1>} last = Constant() {value=<int64[1] 3>}"
    "  first = Constant() {value=<int64[1] 0>}"
    "  part = Slice(sum, one, last, first)"
    "  less = Less(x, w) kept = NonZero(less) wide = Cast(kept) {to=1} found = Relu(wide)"
    "  place = ArgMax(sum) {axis=1} shaped = Reshape(sum, to)"
    "  nothing = Slice(sum, first, first, first) bits = Sub(x, x) }";
#define N_OUTPUTS 12

static struct ree_device *device;
static struct ree_error err;

static struct ree_session *open_session(const char *text, struct ree_model **out_model) {
    struct ree_session *session;
    struct pb bytes = model_text(text);
    enum ree_status status = ree_model_load_memory(bytes.data, bytes.size, NULL, out_model, &err);
    pb_free(&bytes);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    REQUIRE(ree_session_create(*out_model, device, NULL, &session, &err) == REE_OK);
    return session;
}

static struct ree_tensor floats(const char *name, int64_t rows, int64_t n, uint32_t seed) {
    struct ree_tensor t;
    const int64_t dims[2] = {rows, n};
    REQUIRE(ree_tensor_init(&t, name, REE_F32, 2, dims, &err) == REE_OK);
    for (int64_t i = 0; i < rows * n; i++)
        ((float *)t.data)[i] = (float)((int32_t)((seed += 12345) * 2654435761u) >> 8) / 65536;
    const uint32_t nan = 0xFF800123; // with a sign and a payload
    memcpy(t.data, &nan, sizeof nan);
    return t;
}

static bool is_equal(const struct ree_tensor *a, const struct ree_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank || a->nbytes != b->nbytes) return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return !a->nbytes || !memcmp(a->data, b->data, a->nbytes);
}

static struct ree_device_tensor *on_device(const struct ree_tensor *contents) {
    struct ree_device_tensor *t = NULL;
    CHECK_MSG(ree_device_tensor_create(device, contents, &t, &err) == REE_OK, "%s", err.message);
    REQUIRE(t);
    return t;
}

static void finish(struct ree_tensor *tensors, size_t n) {
    for (size_t i = 0; i < n; i++)
        ree_tensor_finish(&tensors[i]);
}

// Runs with the inputs in `in_mask` and the outputs in `out_mask` on the device, and compares all
// outputs with the expected ones.
static void check_run(struct ree_session *session, const struct ree_tensor *in, size_t n_in,
                      const struct ree_tensor *expected, size_t n_out, unsigned in_mask,
                      unsigned out_mask) {
    struct ree_tensor host[8], made[16], read;
    struct ree_named_device_tensor from[8], to[16];
    size_t n_host = 0, n_from = 0, n_to = 0;
    for (size_t i = 0; i < n_in; i++) {
        if (in_mask >> i & 1)
            from[n_from++] = (struct ree_named_device_tensor){in[i].name, on_device(&in[i])};
        else
            host[n_host++] = in[i];
    }
    for (size_t i = 0; i < n_out; i++) {
        if (!(out_mask >> i & 1)) continue;
        struct ree_tensor blank = expected[i];
        blank.data = calloc(1, blank.nbytes + 1);
        to[n_to++] = (struct ree_named_device_tensor){expected[i].name, on_device(&blank)};
        free(blank.data);
    }
    for (int round = 0; round < 2; round++) { // the second with the bind of the first
        enum ree_status status =
            ree_session_run_on_device(session, host, n_host, from, n_from, to, n_to, made, &err);
        CHECK_MSG(status == REE_OK, "%x %x: %s", in_mask, out_mask, err.message);
        if (status != REE_OK) break;
        for (size_t i = 0, k = 0; i < n_out; i++) {
            bool is_there = out_mask >> i & 1;
            if (!is_there) {
                CHECK_MSG(is_equal(&made[i], &expected[i]), "%x %x: output '%s' differs", in_mask,
                          out_mask, expected[i].name);
                continue;
            }
            CHECK(!made[i].data && !made[i].name);
            REQUIRE(ree_device_tensor_read(to[k++].tensor, &read, &err) == REE_OK);
            CHECK_MSG(is_equal(&read, &expected[i]), "%x %x: device tensor '%s' differs", in_mask,
                      out_mask, expected[i].name);
            ree_tensor_finish(&read);
        }
        finish(made, n_out);
    }
    for (size_t i = 0; i < n_from; i++)
        ree_device_tensor_destroy(from[i].tensor);
    for (size_t i = 0; i < n_to; i++)
        ree_device_tensor_destroy(to[i].tensor);
}

static void check_all_ways(int64_t n) {
    struct ree_model *model;
    struct ree_session *session = open_session(all_ways, &model);
    const int64_t two = 2;
    struct ree_tensor in[3] = {floats("x", 3, n, 7), floats("w", 3, n, 99)}, out[N_OUTPUTS];
    REQUIRE(ree_tensor_init(&in[2], "to", REE_I64, 1, &two, &err) == REE_OK);
    ((int64_t *)in[2].data)[0] = n;
    ((int64_t *)in[2].data)[1] = 3;
    enum ree_status status = ree_session_run(session, in, 3, out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK && ree_model_n_outputs(model) == N_OUTPUTS);
    const unsigned all = (1u << N_OUTPUTS) - 1;
    for (unsigned inputs = 0; inputs < 8; inputs++) {
        check_run(session, in, 3, out, N_OUTPUTS, inputs, all);
        check_run(session, in, 3, out, N_OUTPUTS, inputs, inputs % 2 ? 0x555 : 0xAAA);
        check_run(session, in, 3, out, N_OUTPUTS, inputs, 0);
    }
    for (unsigned i = 0; i < N_OUTPUTS; i++)
        check_run(session, in, 3, out, N_OUTPUTS, i % 8, 1u << i);
    finish(in, 3);
    finish(out, N_OUTPUTS);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

// A state that goes round on the device has the same value as one that goes through the host, and
// the session binds the model once.
static void check_states(void) {
    static const char text[] = "opset 17 (s:float32[2,9], x:float32[2,9]) -> (next, seen) {"
                               "  p = Mul(s, x) next = Tanh(p) m = ReduceMax(next) seen = Neg(m) }";
    struct ree_model *model;
    struct ree_session *session = open_session(text, &model);
    struct ree_tensor host[2] = {floats("s", 2, 9, 1), floats("x", 2, 9, 2)}, out[2], read;
    ((float *)host[0].data)[0] = 1;
    struct ree_device_tensor *present = on_device(&host[0]), *next = on_device(&host[0]);
    struct ree_session_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    for (int i = 0; i < 12; i++) {
        REQUIRE(ree_session_run(session, host, 2, out, &err) == REE_OK);
        memcpy(host[0].data, out[0].data, out[0].nbytes);
        float seen = *(float *)out[1].data;
        finish(out, 2);
        const struct ree_named_device_tensor from = {"s", present}, to = {"next", next};
        if (i == 1) REQUIRE(ree_session_stats(session, &before, &err) == REE_OK);
        enum ree_status status =
            ree_session_run_on_device(session, &host[1], 1, &from, 1, &to, 1, out, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        REQUIRE(status == REE_OK);
        CHECK(!memcmp(&seen, out[1].data, sizeof seen));
        finish(out, 2);
        struct ree_device_tensor *swap = present;
        present = next;
        next = swap;
    }
    REQUIRE(ree_session_stats(session, &after, &err) == REE_OK);
    CHECK(after.n_binds == before.n_binds && after.n_binds == 2);
    REQUIRE(ree_device_tensor_read(present, &read, &err) == REE_OK);
    CHECK(is_equal(&read, &host[0]));
    ree_tensor_finish(&read);
    ree_device_tensor_destroy(present);
    ree_device_tensor_destroy(next);
    finish(host, 2);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

// Checks the status of a call that must fail, and a part of its message.
static void refused(enum ree_status status, enum ree_status expected, const char *part) {
    CHECK_MSG(status == expected && strstr(err.message, part), "status %d, '%s' is not '%s'",
              (int)status, err.message, part);
    err.message[0] = 0;
}

static enum ree_status no_value(void *user, const struct ree_observed *value, struct ree_error *e) {
    (void)user;
    (void)value;
    (void)e;
    return REE_OK;
}

static void check_sequence(void) {
    static const char text[] = "opset 17 (x:float32[2,3]) -> (q) { q = SequenceConstruct(x, x) }";
    struct ree_model *model;
    struct ree_session *session = open_session(text, &model);
    struct ree_tensor x = floats("x", 2, 3, 1), out;
    struct ree_device_tensor *to = on_device(&x);
    const struct ree_named_device_tensor named = {"q", to};
    refused(ree_session_run_on_device(session, &x, 1, NULL, 0, &named, 1, &out, &err), REE_INVALID,
            "output 'q' is no tensor");
    ree_device_tensor_destroy(to);
    ree_tensor_finish(&x);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

static void check_refused(void) {
    static const char text[] = "opset 17 (x:float32[2,n], w:float32[2,n], go:bool[]) -> (y, z) { y "
                               "= Add(x, w) z = Not(go) }";
    struct ree_model *model;
    struct ree_session *session = open_session(text, &model);
    struct ree_device *other;
    REQUIRE(ree_device_open("cpu", NULL, &other, &err) == REE_OK);
    struct ree_tensor in[3] = {floats("x", 2, 3, 1), floats("w", 2, 3, 2)}, out[2], copy;
    REQUIRE(ree_tensor_init(&in[2], "go", REE_BOOL, 0, NULL, &err) == REE_OK);
    struct ree_tensor wide = floats("x", 2, 4, 1);
    struct ree_device_tensor *x = on_device(&in[0]), *go = on_device(&in[2]),
                             *w4 = on_device(&wide), *y = on_device(&in[0]), *elsewhere, *none;
    REQUIRE(ree_device_tensor_create(other, &in[0], &elsewhere, &err) == REE_OK);

#define FROM(...) (const struct ree_named_device_tensor[]){__VA_ARGS__}
#define RUN(n_host, from, n_from, to, n_to)                                                        \
    ree_session_run_on_device(session, in + 3 - (n_host), n_host, from, n_from, to, n_to, out, &err)
    refused(RUN(2, FROM({"v", x}), 1, NULL, 0), REE_INVALID, "the model has no input 'v'");
    refused(RUN(3, NULL, 0, FROM({"x", y}), 1), REE_INVALID, "the model has no output 'x'");
    refused(RUN(3, FROM({"x", x}), 1, NULL, 0), REE_INVALID, "input 'x' is given more than once");
    refused(RUN(2, FROM({"x", x}, {"x", y}), 2, NULL, 0), REE_INVALID,
            "input 'x' is given more than once");
    refused(RUN(3, NULL, 0, FROM({"y", x}, {"y", y}), 2), REE_INVALID,
            "output 'y' is given more than once");
    refused(RUN(2, FROM({"x", x}), 1, FROM({"y", x}), 1), REE_INVALID,
            "the device tensor of output 'y' has another use in the same run");
    refused(RUN(3, NULL, 0, FROM({"y", x}, {"z", x}), 2), REE_INVALID, "has another use");
    refused(RUN(2, FROM({"x", elsewhere}), 1, NULL, 0), REE_INVALID,
            "the tensor of input 'x' is on another device");
    refused(RUN(2, FROM({"x", go}), 1, NULL, 0), REE_INVALID, "input 'x' is bool[], expected");
    refused(RUN(2, FROM({"x", w4}), 1, NULL, 0), REE_INVALID, "dimension 'n' is 4 in input 'x'");
    refused(RUN(3, NULL, 0, FROM({"y", w4}), 1), REE_INVALID,
            "output 'y' is float32[2,3], expected float32[2,4]");
    refused(RUN(3, NULL, 0, FROM({"y", go}), 1), REE_INVALID, "expected bool[]");
    refused(RUN(1, FROM({"x", x}), 1, NULL, 0), REE_INVALID, "input 'w' is missing");
    // The same tensor may be two inputs, also after a run that was refused.
    REQUIRE(RUN(1, FROM({"x", x}, {"w", x}), 2, FROM({"y", y}), 1) == REE_OK);
    finish(out, 2);

    copy = in[0];
    copy.nbytes -= 4;
    refused(ree_device_tensor_create(device, &copy, &none, &err), REE_INVALID, "does not match");
    CHECK(!none);
    refused(ree_device_tensor_write(x, &wide, &err), REE_INVALID,
            "the value for a device tensor is float32[2,4], expected float32[2,3]");
    copy = in[2];
    *(unsigned char *)copy.data = 2;
    refused(ree_device_tensor_write(go, &copy, &err), REE_INVALID, "not a valid bool");
    *(unsigned char *)copy.data = 1;
    refused(ree_device_tensor_copy(x, in[0].data, 8, &err), REE_INVALID, "has 24 bytes");
    copy = (struct ree_tensor){.kind = REE_SEQUENCE, .dtype = REE_F32};
    refused(ree_device_tensor_create(device, &copy, &none, &err), REE_UNSUPPORTED, "sequences");
    copy = (struct ree_tensor){.dtype = REE_STRING};
    copy.rank = 1; // no elements
    refused(ree_device_tensor_create(device, &copy, &none, &err), REE_UNSUPPORTED, "strings");
    ree_session_destroy(session);

    REQUIRE(ree_session_create(model, device, NULL, &session, &err) == REE_OK);
    const struct ree_observer observer = {.on_value = no_value};
    REQUIRE(ree_session_observe(session, &observer, &err) == REE_OK);
    refused(RUN(2, FROM({"x", x}), 1, NULL, 0), REE_UNSUPPORTED, "a recorded run");
    ree_session_destroy(session);
    struct ree_device_tensor *all[] = {x, go, w4, y, elsewhere};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ree_device_tensor_destroy(all[i]);
    finish(in, 3);
    ree_tensor_finish(&wide);
    ree_model_destroy(model);
    ree_device_destroy(other);
}

int main(int argc, char **argv) {
    const char *spec = argc > 1 ? argv[1] : "cpu";
    if (ree_device_open(spec, NULL, &device, &err) != REE_OK) {
        CHECK_MSG(err.status == REE_UNAVAILABLE, "%s", err.message);
        return err.status == REE_UNAVAILABLE ? test_skip(err.message) : 1;
    }
    check_all_ways(5);
    check_all_ways(70);
    check_states();
    check_sequence();
    check_refused();
    ree_device_destroy(device);
    return test_finish();
}
