// Compact operators give the bits of the sequences that NUMERICS.md defines, written here in plain
// operators.
#include "run_model.h"
#include "test.h"

static uint64_t seed = 1;

static struct ree_tensor random4(int64_t a, int64_t b, int64_t c, int64_t d) {
    return tensor_random(&seed, 4, (int64_t[]){a, b, c, d});
}

static struct ree_tensor random3(int64_t a, int64_t b, int64_t c) {
    return tensor_random(&seed, 3, (int64_t[]){a, b, c});
}

// Compares the outputs of both models for the same inputs; releases the inputs.
static void check_same(const char *compact, const char *steps, struct ree_tensor *in, size_t n_in,
                       size_t n_out) {
    struct ree_tensor a[4], b[4];
    run_model(compact, in, n_in, a);
    run_model(steps, in, n_in, b);
    for (size_t i = 0; i < n_out; i++)
        CHECK_MSG(tensor_equal(&a[i], &b[i], "output"), "output %zu of\n%s\nand\n%s", i, compact,
                  steps);
    tensors_finish(a, n_out);
    tensors_finish(b, n_out);
    tensors_finish(in, n_in);
}

#define QKV "opset 24 (q:float32[b,h,t,d], k:float32[b,h,s,d], v:float32[b,h,s,e]"
#define QKV_IN random4(2, 3, 5, 20), random4(2, 3, 270, 20), random4(2, 3, 270, 12)

static void test_attention(void) {
    check_same(QKV ") -> (y) { y = Attention(q, k, v) {scale=0.3} }",
               QKV ") -> (y) { f = Constant() {value=<float32[] 0.3>} "
                   "u = Transpose(k) {perm=[0,1,3,2]} p = MatMul(q, u) s = Mul(p, f) "
                   "w = Softmax(s) {axis=-1} y = MatMul(w, v) }",
               (struct ree_tensor[]){QKV_IN}, 3, 1);
    check_same(QKV ", m:float32[t,s]) -> (y, c) { y, _, _, c = Attention(q, k, v, m) "
                   "{softcap=1.5, qk_matmul_output_mode=1} }",
               QKV ", m:float32[t,s]) -> (y, c) { f = Constant() {value=<float32[] 20>} "
                   "r = Sqrt(f) one = Constant() {value=<float32[] 1>} scale = Div(one, r) "
                   "cap = Constant() {value=<float32[] 1.5>} "
                   "u = Transpose(k) {perm=[0,1,3,2]} p = MatMul(q, u) s = Mul(p, scale) "
                   "x = Div(s, cap) h = Tanh(x) c = Mul(h, cap) z = Add(c, m) "
                   "w = Softmax(z) {axis=-1} y = MatMul(w, v) }",
               (struct ree_tensor[]){QKV_IN, tensor_random(&seed, 2, (int64_t[]){5, 270})}, 4, 2);
    // As ONNX decomposes it, with a scale whose square root is exact.
    check_same(QKV ", m:float32[b,h,t,s]) -> (y, t2, w) { "
                   "y, _, _, t2 = Attention(q, k, v, m) {scale=0.25, qk_matmul_output_mode=2} "
                   "_, _, _, w = Attention(q, k, v, m) {scale=0.25, qk_matmul_output_mode=3} }",
               QKV ", m:float32[b,h,t,s]) -> (y, z, w) { f = Constant() {value=<float32[] 0.5>} "
                   "u = Transpose(k) {perm=[0,1,3,2]} x = Mul(q, f) x2 = Mul(u, f) "
                   "p = MatMul(x, x2) z = Add(p, m) w = Softmax(z) {axis=-1} y = MatMul(w, v) }",
               (struct ree_tensor[]){QKV_IN, random4(2, 3, 5, 270)}, 4, 3);
    // Packed heads; two query heads share each kv head.
    check_same("opset 24 (q:float32[b,t,24], k:float32[b,s,12], v:float32[b,s,8]) -> (y, s0) "
               "{ y, _, _, s0 = Attention(q, k, v) {q_num_heads=4, kv_num_heads=2, scale=1.0} }",
               "opset 24 (q:float32[b,t,24], k:float32[b,s,12], v:float32[b,s,8]) -> (y, s0) { "
               "qs = Constant() {value=<int64[5] 0 0 2 2 6>} "
               "ks = Constant() {value=<int64[5] 0 0 2 1 6>} "
               "vs = Constant() {value=<int64[5] 0 0 2 1 4>} "
               "q5 = Reshape(q, qs) k5 = Reshape(k, ks) v5 = Reshape(v, vs) "
               "qt = Transpose(q5) {perm=[0,2,3,1,4]} kt = Transpose(k5) {perm=[0,2,3,4,1]} "
               "vt = Transpose(v5) {perm=[0,2,3,1,4]} s5 = MatMul(qt, kt) "
               "w = Softmax(s5) {axis=-1} y5 = MatMul(w, vt) "
               "yt = Transpose(y5) {perm=[0,3,1,2,4]} ys = Constant() {value=<int64[3] 0 0 16>} "
               "y = Reshape(yt, ys) ss = Constant() {value=<int64[4] 2 4 5 9>} "
               "s0 = Reshape(s5, ss) }",
               (struct ree_tensor[]){random3(2, 5, 24), random3(2, 9, 12), random3(2, 9, 8)}, 3, 2);
}

static void test_rotary(void) {
    // Halves: y = x * cos + (-x1, x0) * sin.
    check_same("opset 24 (x:float32[b,h,t,8], c:float32[b,t,4], s:float32[b,t,4]) -> (y) "
               "{ y = RotaryEmbedding(x, c, s) }",
               "opset 24 (x:float32[b,h,t,8], c:float32[b,t,4], s:float32[b,t,4]) -> (y) { "
               "one = Constant() {value=<int64[1] 1>} c4 = Unsqueeze(c, one) "
               "s4 = Unsqueeze(s, one) x0, x1 = Split(x) {axis=-1, num_outputs=2} "
               "a = Mul(c4, x0) d = Mul(s4, x1) y0 = Sub(a, d) "
               "e = Mul(s4, x0) f = Mul(c4, x1) y1 = Add(e, f) y = Concat(y0, y1) {axis=-1} }",
               (struct ree_tensor[]){random4(2, 3, 5, 8), random3(2, 5, 4), random3(2, 5, 4)}, 3,
               1);
    // Interleaved, six of eight elements, rows of a cache by position, packed heads.
    const int64_t positions[6] = {4, 0, 6, 1, 1, 5};
    struct ree_tensor ids = tensor_new(REE_I64, 2, (int64_t[]){2, 3});
    for (int i = 0; i < 6; i++)
        ((int64_t *)ids.data)[i] = positions[i];
    check_same("opset 24 (x:float32[2,3,24], c:float32[7,3], s:float32[7,3], p:int64[2,3]) -> (y) "
               "{ y = RotaryEmbedding(x, c, s, p) "
               "{num_heads=3, rotary_embedding_dim=6, interleaved=1} }",
               "opset 24 (x:float32[2,3,24], c:float32[7,3], s:float32[7,3], p:int64[2,3]) -> (y) {"
               "hs = Constant() {value=<int64[4] 2 3 3 8>} h = Reshape(x, hs) "
               "n = Constant() {value=<int64[2] 6 2>} r, rest = Split(h, n) {axis=-1} "
               "ps = Constant() {value=<int64[5] 2 3 3 3 2>} r5 = Reshape(r, ps) "
               "x0, x1 = Split(r5) {axis=-1, num_outputs=2} "
               "cp = Gather(c, p) sp = Gather(s, p) ts = Constant() {value=<int64[5] 2 3 1 3 1>} "
               "c5 = Reshape(cp, ts) s5 = Reshape(sp, ts) "
               "a = Mul(c5, x0) d = Mul(s5, x1) y0 = Sub(a, d) "
               "e = Mul(s5, x0) f = Mul(c5, x1) y1 = Add(e, f) y5 = Concat(y0, y1) {axis=-1} "
               "rs = Constant() {value=<int64[4] 2 3 3 6>} yr = Reshape(y5, rs) "
               "y4 = Concat(yr, rest) {axis=-1} ys = Constant() {value=<int64[3] 2 3 24>} "
               "y = Reshape(y4, ys) }",
               (struct ree_tensor[]){random3(2, 3, 24), tensor_random(&seed, 2, (int64_t[]){7, 3}),
                                     tensor_random(&seed, 2, (int64_t[]){7, 3}), ids},
               4, 1);
}

static void test_tensor_scatter(void) {
    // Batch 0 writes at 3 and 4, batch 1 at 4 and, wrapping around, at 0.
    check_same("opset 24 (c:float32[2,3,5,2], u:float32[2,3,2,2], at:int64[2]) -> (y) "
               "{ y = TensorScatter(c, u, at) {mode=\"circular\"} }",
               "opset 24 (c:float32[2,3,5,2], u:float32[2,3,2,2], at:int64[2]) -> (y) { "
               "c0, c1 = Split(c) {axis=0, num_outputs=2} u0, u1 = Split(u) {axis=0, num_outputs=2}"
               "n0 = Constant() {value=<int64[2] 3 2>} a, _ = Split(c0, n0) {axis=2} "
               "y0 = Concat(a, u0) {axis=2} "
               "n1 = Constant() {value=<int64[3] 1 3 1>} _, m, _ = Split(c1, n1) {axis=2} "
               "u1a, u1b = Split(u1) {axis=2, num_outputs=2} y1 = Concat(u1b, m, u1a) {axis=2} "
               "y = Concat(y0, y1) {axis=0} }",
               (struct ree_tensor[]){random4(2, 3, 5, 2), random4(2, 3, 2, 2),
                                     tensor_ints(2, (int64_t[]){3, 9})},
               3, 1);
    check_same("opset 24 (c:float32[2,4,3], u:float32[2,2,3]) -> (y) { y = TensorScatter(c, u) }",
               "opset 24 (c:float32[2,4,3], u:float32[2,2,3]) -> (y) { "
               "n = Constant() {value=<int64[2] 2 2>} _, b = Split(c, n) {axis=1} "
               "y = Concat(u, b) {axis=1} }",
               (struct ree_tensor[]){random3(2, 4, 3), random3(2, 2, 3)}, 2, 1);
}

static void test_causal_conv(void) {
    check_same("opset 27 (x:float32[2,3,7], w:float32[3,1,4], b:float32[3], p:float32[2,3,3]) "
               "-> (y, n) { y, n = CausalConvWithState(x, w, b, p) {activation=\"silu\"} }",
               "opset 27 (x:float32[2,3,7], w:float32[3,1,4], b:float32[3], p:float32[2,3,3]) "
               "-> (y, n) { h = Concat(p, x) {axis=2} c = Conv(h, w, b) {group=3} s = Sigmoid(c) "
               "y = Mul(c, s) k = Constant() {value=<int64[2] 7 3>} _, n = Split(h, k) {axis=2} }",
               (struct ree_tensor[]){random3(2, 3, 7), random3(3, 1, 4),
                                     tensor_random(&seed, 1, (int64_t[]){3}), random3(2, 3, 3)},
               4, 2);
    // A state longer than the input, initially zeros.
    check_same("opset 27 (x:float32[2,3,2], w:float32[3,1,5]) -> (y, n) "
               "{ y, n = CausalConvWithState(x, w) }",
               "opset 27 (x:float32[2,3,2], w:float32[3,1,5]) -> (y, n) { "
               "y = Conv(x, w) {group=3, pads=[4,0]} p = Constant() {value=<int64[6] 0 0 2 0 0 0>}"
               "n = Pad(x, p) }",
               (struct ree_tensor[]){random3(2, 3, 2), random3(3, 1, 5)}, 2, 2);
}

static void test_swiglu(void) {
    check_same("opset 28 (a:float32[2,9], b:float32[2,9]) -> (y) { y = SwiGLU(a, b) {alpha=1.7} }",
               "opset 28 (a:float32[2,9], b:float32[2,9]) -> (y) { "
               "f = Constant() {value=<float32[] 1.7>} s = Mul(f, a) g = Sigmoid(s) "
               "w = Mul(a, g) y = Mul(w, b) }",
               (struct ree_tensor[]){tensor_random(&seed, 2, (int64_t[]){2, 9}),
                                     tensor_random(&seed, 2, (int64_t[]){2, 9})},
               2, 1);
}

#define LINEAR                                                                                     \
    "opset 27 (q:float32[b,t,24], k:float32[b,t,12], v:float32[b,t,10], p:float32[b,2,6,5], "      \
    "g:float32[b,t,12], be:float32[b,t,2]) -> (y, n) "
#define LINEAR_STEP                                                                                \
    LINEAR                                                                                         \
    "{ qs = Constant() {value=<int64[4] 2 2 2 6>} ks = Constant() {value=<int64[4] 2 2 6 "         \
    "1>} "                                                                                         \
    "vs = Constant() {value=<int64[4] 2 2 1 5>} bs = Constant() {value=<int64[4] 2 2 1 1>} "       \
    "q4 = Reshape(q, qs) k4 = Reshape(k, ks) v4 = Reshape(v, vs) "                                 \
    "g4 = Reshape(g, ks) b4 = Reshape(be, bs) "

static void test_linear_attention(void) {
#define LINEAR_IN                                                                                  \
    random3(2, 1, 24), random3(2, 1, 12), random3(2, 1, 10), random4(2, 2, 6, 5),                  \
        random3(2, 1, 12), random3(2, 1, 2)
    check_same(LINEAR "{ y, n = LinearAttention(q, k, v, p, g, be) "
                      "{q_num_heads=4, kv_num_heads=2, scale=0.7} }",
               LINEAR_STEP
               "e = Exp(g4) s = Mul(p, e) st = Transpose(s) {perm=[0,1,3,2]} r0 = MatMul(st, k4) "
               "r = Transpose(r0) {perm=[0,1,3,2]} d = Sub(v4, r) u = Mul(b4, d) "
               "o = MatMul(k4, u) n = Add(s, o) f = Constant() {value=<float32[] 0.7>} "
               "y4 = MatMul(q4, n) y5 = Mul(f, y4) ys = Constant() {value=<int64[3] 2 1 20>} "
               "y = Reshape(y5, ys) }",
               (struct ree_tensor[]){LINEAR_IN}, 6, 2);
}

// Token by token gives the same result as all tokens at once.
static void test_linear_attention_cuts(void) {
    static const char model[] =
        LINEAR "{ y, n = LinearAttention(q, k, v, p, g, be) {q_num_heads=4, kv_num_heads=2} }";
    struct ree_tensor in[6] = {random3(2, 6, 24),   random3(2, 6, 12), random3(2, 6, 10),
                               random4(2, 2, 6, 5), random3(2, 6, 12), random3(2, 6, 2)};
    struct ree_tensor whole[2], part[6], y[2];
    run_model(model, in, 6, whole);
    struct ree_tensor state = tensor_slice(&in[3], 0, 0, 2);
    for (int64_t t = 0; t < 6; t++) {
        for (int i = 0; i < 6; i++)
            part[i] = i == 3 ? state : tensor_slice(&in[i], 1, t, t + 1);
        run_model(model, part, 6, y);
        CHECK_MSG(slice_equal(&whole[0], 1, t, t + 1, &y[0], "output"), "token %lld", (long long)t);
        tensors_finish(part, 6);
        ree_tensor_finish(&y[0]);
        state = y[1];
    }
    CHECK(tensor_equal(&whole[1], &state, "state"));
    ree_tensor_finish(&state);
    tensors_finish(whole, 2);
    tensors_finish(in, 6);
}

int main(int argc, char **argv) {
    if (!run_start(argc, argv)) return 77;
    test_attention();
    test_rotary();
    test_tensor_scatter();
    test_causal_conv();
    test_swiglu();
    test_linear_attention();
    test_linear_attention_cuts();
    CHECK(run_finish());
    return test_finish();
}
