// NaN payloads: BitCast gives the canonical integer for every NaN, whether it was computed, moved,
// or an input with a sign or a payload, on every device and instruction set. So inputs with equal
// digests, in which NaNs are canonical, give outputs with equal digests.
#include <string.h>

#include "base/dtype.h"
#include "graph/model_text.h"
#include "ree.h"
#include "test.h"

#define N 67

static struct ree_device *device;

// NaNs from an input, moved by Slice, computed, chosen by Where, in two maps that are fused, and of
// other types.
static const char text[] =
    "opset 26"
    " (x:float32[67], d:float64[67], go:bool[67]) -> (a, b, c, e, f, g, h) {"
    "  last = Constant() {value=<int64[1] -1>} first = Constant() {value=<int64[1] -68>}"
    "  axis = Constant() {value=<int64[1] 0>}"
    "  a = BitCast(x) {to=6}"
    "  r = Slice(x, last, first, axis, last) b = BitCast(r) {to=6}"
    "  m = Sub(x, x) n = Neg(m) c = BitCast(n) {to=12}"
    "  w = Where(go, x, n) v = Identity(w) e = BitCast(v) {to=6}"
    "  f = BitCast(d) {to=7}"
    "  k = Cast(x) {to=10} g = BitCast(k) {to=5}"
    "  i = BitCast(a) {to=1} h = BitCast(i) {to=12} }";

static bool is_canonical(uint64_t bits, size_t size) {
    if (size == 2) return (bits & 0x7FFF) <= 0x7C00 || bits == 0x7E00;
    if (size == 4) return (bits & 0x7FFFFFFF) <= 0x7F800000 || bits == 0x7FC00000;
    return (bits & INT64_MAX) <= UINT64_C(0x7FF0000000000000) ||
           bits == UINT64_C(0x7FF8000000000000);
}

static void fill(struct ree_tensor *x, struct ree_tensor *d, struct ree_tensor *go) {
    static const uint32_t singles[] = {0x7F800001, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000,
                                       0x7F800000, 0xFF800000, 0x3F800000, 0x80000000};
    for (size_t i = 0; i < N; i++) {
        uint32_t single = singles[i * 5 % 9];
        uint64_t wide = (uint64_t)single << 32 | (i % 2);
        if (single << 1 >= 0xFF000000) wide |= UINT64_C(0x7FF0000000000000);
        memcpy((char *)x->data + 4 * i, &single, 4);
        memcpy((char *)d->data + 8 * i, &wide, 8);
        ((bool *)go->data)[i] = i % 3 == 0;
    }
}

static void run(bool canonical_inputs, bool folds, char hex[65]) {
    struct ree_error err = {0};
    struct ree_model *model;
    struct ree_session *session;
    struct ree_model_options options = {.size = sizeof options, .no_fold = !folds};
    struct ree_session_options session_options = {.size = sizeof session_options,
                                                  .no_fuse = !folds};
    struct pb bytes = model_text(text);
    enum ree_status status = ree_model_load_memory(bytes.data, bytes.size, &options, &model, &err);
    pb_free(&bytes);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    REQUIRE(ree_session_create(model, device, &session_options, &session, &err) == REE_OK);
    struct ree_tensor in[3], out[7];
    const int64_t dims[1] = {N};
    REQUIRE(ree_tensor_init(&in[0], "x", REE_F32, 1, dims, &err) == REE_OK);
    REQUIRE(ree_tensor_init(&in[1], "d", REE_F64, 1, dims, &err) == REE_OK);
    REQUIRE(ree_tensor_init(&in[2], "go", REE_BOOL, 1, dims, &err) == REE_OK);
    fill(&in[0], &in[1], &in[2]);
    if (canonical_inputs)
        for (size_t i = 0; i < 2; i++)
            ree_canonicalise_nans(in[i].dtype, N, in[i].data);
    status = ree_session_run(session, in, 3, out, &err);
    CHECK_MSG(status == REE_OK, "%s", err.message);
    REQUIRE(status == REE_OK);
    for (size_t k = 0; k < 7; k++) {
        size_t size = ree_dtype_size(out[k].dtype);
        for (size_t i = 0; i < N; i++) {
            uint64_t bits = 0;
            memcpy(&bits, (char *)out[k].data + i * size, size);
            CHECK_MSG(is_canonical(bits, size), "%s[%zu] is 0x%llx", out[k].name, i,
                      (unsigned long long)bits);
        }
    }
    ree_tensors_sha256(out, 7, hex);
    for (size_t k = 0; k < 7; k++)
        ree_tensor_finish(&out[k]);
    for (size_t k = 0; k < 3; k++)
        ree_tensor_finish(&in[k]);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

int main(int argc, char **argv) {
    // SHA-256 of the outputs, the same on every device.
    static const char recorded[] =
        "c01bf5978e7f719dfd10bfd7eb667b259d99105cf600de6757406ce414d78726";
    const char *spec = argc > 1 ? argv[1] : "cpu";
    static const char *const sets[] = {NULL, "portable", "avx2"};
    bool cpu = !strcmp(spec, "cpu");
    for (size_t i = 0; i < (cpu ? 3 : 1); i++) {
        struct ree_error err = {0};
        struct ree_device_options options = {
            .size = sizeof options, .cache_dir = "", .cpu_isa = sets[i]};
        if (ree_device_open(spec, &options, &device, &err) != REE_OK) {
            CHECK_MSG(err.status == REE_UNAVAILABLE, "%s", err.message);
            if (sets[i]) continue; // this machine lacks the instruction set
            return err.status == REE_UNAVAILABLE ? test_skip(err.message) : 1;
        }
        for (int k = 0; k < 4; k++) {
            char hex[65];
            run(k & 1, k & 2, hex);
            CHECK_MSG(!strcmp(hex, recorded), "%s: outputs are %s", spec, hex);
        }
        ree_device_destroy(device);
    }
    return test_finish();
}
