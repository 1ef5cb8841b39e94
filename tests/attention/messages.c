// Error messages for invalid nodes.
#include "control/run_text.h"

#define ZEROS8 "0 0 0 0 0 0 0 0"

// Checks that one node is refused. Its float32 inputs are named a, b, c, ...; `inputs` is their
// text.
#define REFUSED(node, types, inputs, message)                                                      \
    CHECK_RUN("opset 28 (" types ") -> (y) { " node " }", inputs, "error: " message)

#define QKV "q:float32[1,2,2,2], k:float32[1,n,s,d], v:float32[1,m,r,2]"
#define Q "float32[1,2,2,2] " ZEROS8
#define KV1 "float32[1,1,2,2] 0 0 0 0"

static void attention_shapes(void) {
    REFUSED("y = Attention(q, k, v)", QKV, Q "|float32[1,1,2,3] 0 0 0 0 0 0|" KV1,
            "the key float32[1,1,2,3] does not match the query float32[1,2,2,2]: batch and head "
            "sizes must be equal");
    REFUSED("y = Attention(q, k, v)", QKV, Q "|" KV1 "|float32[1,1,1,2] 0 0",
            "the value float32[1,1,1,2] does not match the key float32[1,1,2,2]: batch, heads and "
            "length must be equal");
    REFUSED("y = Attention(q, k, v)", QKV,
            Q "|float32[1,3,1,2] 0 0 0 0 0 0|float32[1,3,1,2] 0 0 0 0 0 0",
            "the query has 2 heads, expected a multiple of the key's 3");
    REFUSED("y = Attention(q, k, v) {q_num_heads=3}", QKV, Q "|" KV1 "|" KV1,
            "q_num_heads is 3, but the query is float32[1,2,2,2]");
    REFUSED("y = Attention(q, k, v)", "q:float32[1,2,2,2], k:float32[1,2,2], v:float32[1,2,2]",
            Q "|float32[1,2,2] 0 0 0 0|float32[1,2,2] 0 0 0 0",
            "the key is float32[1,2,2], expected rank 3 or 4, the same for query, key and value");
    REFUSED("y = Attention(q, k, v) {kv_num_heads=1}",
            "q:float32[1,2,2], k:float32[1,2,2], v:float32[1,2,2]",
            "float32[1,2,2] 0 0 0 0|float32[1,2,2] 0 0 0 0|float32[1,2,2] 0 0 0 0",
            "q_num_heads is 0; inputs of rank 3 require it to be 1 or more");
    REFUSED("y = Attention(q, k, v) {kv_num_heads=1, q_num_heads=3}",
            "q:float32[1,2,2], k:float32[1,2,2], v:float32[1,2,2]",
            "float32[1,2,2] 0 0 0 0|float32[1,2,2] 0 0 0 0|float32[1,2,2] 0 0 0 0",
            "the query is float32[1,2,2], expected rank 3 with a last size that is a multiple of 3 "
            "heads");
    REFUSED("y = Attention(q, k, v)", "q:int64[1,1,1,1], k:int64[1,1,1,1], v:int64[1,1,1,1]",
            "int64[1,1,1,1] 0|int64[1,1,1,1] 0|int64[1,1,1,1] 0",
            "the query is int64[1,1,1,1], expected float32, float16 or bfloat16");
}

static void attention_options(void) {
#define OVER_QKV(node, message) REFUSED(node, QKV, Q "|" KV1 "|" KV1, message)
    OVER_QKV("y = Attention(q, k, v) {softcap=-1.0}", "softcap is -1, expected 0 or more");
    OVER_QKV("y = Attention(q, k, v) {softmax_precision=11}",
             "softmax_precision is float64, expected float32, float16 or bfloat16");
    OVER_QKV("y = Attention(q, k, v) {left_window_size=-2}",
             "left_window_size is -2, expected -1 or more");
    OVER_QKV("_, _, _, y = Attention(q, k, v) {qk_matmul_output_mode=4}",
             "qk_matmul_output_mode is 4, expected 0 to 3");
}

static void attention_masks(void) {
    REFUSED("y = Attention(q, k, v, m)", QKV ", m:float32[3,2]",
            Q "|" KV1 "|" KV1 "|float32[3,2] 0 0 0 0 0 0",
            "the bias is float32[3,2], expected float32 that broadcasts to [1,2,2,2]");
    REFUSED("y = Attention(q, k, v, m)", QKV ", m:bool[2,3]",
            Q "|" KV1 "|" KV1 "|bool[2,3] 1 1 1 1 1 1",
            "the mask is bool[2,3], expected bool that broadcasts to [1,2,2,2]");
    REFUSED("y = Attention(q, k, v, m)", QKV ", m:int64[2,2]",
            Q "|" KV1 "|" KV1 "|int64[2,2] 1 1 1 1",
            "attn_mask is int64[2,2], expected bool or the type of the query");
    REFUSED("y = Attention(q, k, v, _, p)", QKV ", p:float32[1,1,1,2]",
            Q "|" KV1 "|" KV1 "|float32[1,1,1,2] 0 0", "past_key is given without past_value");
    REFUSED("y = Attention(q, k, v, _, p, w)", QKV ", p:float32[1,1,1,2], w:float32[1,1,1,3]",
            Q "|" KV1 "|" KV1 "|float32[1,1,1,2] 0 0|float32[1,1,1,3] 0 0 0",
            "past_value is float32[1,1,1,3], expected the type and shape of float32[1,1,2,2], "
            "except for its length");
    REFUSED("y = Attention(q, k, v, _, p, p, n)", QKV ", p:float32[1,1,1,2], n:int64[1]",
            Q "|" KV1 "|" KV1 "|float32[1,1,1,2] 0 0|int64[1] 1",
            "nonpad_kv_seqlen cannot be combined with past_key");
    REFUSED("y = Attention(q, k, v, _, _, _, n)", QKV ", n:int64[2]",
            Q "|" KV1 "|" KV1 "|int64[2] 1 1",
            "the number of valid keys is int64[2], expected 1 integers");
}

static void rotary(void) {
#define X "float32[1,1,2,4] " ZEROS8
#define ROTARY(node, types, inputs, message)                                                       \
    REFUSED(node, "x:float32[1,1,2,4], " types, X "|" inputs, message)
    ROTARY("y = RotaryEmbedding(x, c, c)", "c:float32[1,2,3]", "float32[1,2,3] 0 0 0 0 0 0",
           "cos_cache is float32[1,2,3], expected the type of X and, without position_ids, shape "
           "[1,2,2]");
    ROTARY("y = RotaryEmbedding(x, c, c, p)", "c:float32[2,1], p:int64[1,2]",
           "float32[2,1] 0 0|int64[1,2] 0 0",
           "cos_cache is float32[2,1], expected the type of X and shape [positions,2]");
    ROTARY("y = RotaryEmbedding(x, c, c, p)", "c:float32[1,2], p:int64[1,3]",
           "float32[1,2] 0 0|int64[1,3] 0 0 0", "position_ids is int64[1,3], expected int64[1,2]");
    ROTARY("y = RotaryEmbedding(x, c, c) {rotary_embedding_dim=3}", "c:float32[1,2,1]",
           "float32[1,2,1] 0 0",
           "cannot rotate 3 elements of heads of 4: expected an even number up to the head size");
    REFUSED("y = RotaryEmbedding(x, c, c)", "x:float32[1,2,4], c:float32[1,2,2]",
            "float32[1,2,4] " ZEROS8 "|float32[1,2,2] 0 0 0 0",
            "num_heads is 0; an input of rank 3 requires it to be 1 or more");
    // A position outside the cache is detected at run time.
    ROTARY("y = RotaryEmbedding(x, c, c, p)", "c:float32[1,2], p:int64[1,2]",
           "float32[1,2] 0 0|int64[1,2] 0 1", "is out of range");
}

static void tensor_scatter(void) {
#define SCATTER(node, types, inputs, message)                                                      \
    REFUSED(node, "c:float32[1,2,2], " types, "float32[1,2,2] 0 0 0 0|" inputs, message)
    SCATTER("y = TensorScatter(c, u)", "u:float32[1,3,2]", "float32[1,3,2] 0 0 0 0 0 0",
            "update is float32[1,3,2], expected the type and shape of past_cache, float32[1,2,2]; "
            "only axis 1 may be shorter");
    SCATTER("y = TensorScatter(c, u) {axis=0}", "u:float32[1,2,2]", "float32[1,2,2] 0 0 0 0",
            "axis is 0, the batch; expected another axis");
    SCATTER("y = TensorScatter(c, u) {mode=\"round\"}", "u:float32[1,1,2]", "float32[1,1,2] 0 0",
            "mode is 'round', expected linear or circular");
    SCATTER("y = TensorScatter(c, u, at)", "u:float32[1,1,2], at:int64[2]",
            "float32[1,1,2] 0 0|int64[2] 0 0", "write_indices is int64[2], expected int64[1]");
    SCATTER("y = TensorScatter(c, u, at)", "u:float32[1,1,2], at:int64[1]",
            "float32[1,1,2] 0 0|int64[1] 2", "is out of range");
}

static void linear_attention(void) {
#define LINEAR(node, types, inputs, message)                                                       \
    REFUSED(node, "q:float32[1,1,2], k:float32[1,1,k], " types, "float32[1,1,2] 0 0|" inputs,      \
            message)
#define HEADS "q_num_heads=1, kv_num_heads=1"
    LINEAR("y = LinearAttention(q, k, k)", "z:float32[1]", "float32[1,1,2] 0 0|float32[1] 0",
           "q_num_heads is 0 and kv_num_heads 0, expected a positive number and one that divides "
           "it");
    LINEAR("y = LinearAttention(q, k, k) {" HEADS "}", "z:float32[1]",
           "float32[1,1,2] 0 0|float32[1] 0", "the update rule needs input decay");
    LINEAR("y = LinearAttention(q, k, k, _, z) {" HEADS ", update_rule=\"linear\"}",
           "z:float32[1,1,1]", "float32[1,1,2] 0 0|float32[1,1,1] 0",
           "the update rule does not take input decay");
    LINEAR("y = LinearAttention(q, k, k) {" HEADS ", update_rule=\"x\"}", "z:float32[1]",
           "float32[1,1,2] 0 0|float32[1] 0",
           "update_rule is 'x', expected linear, gated, delta or gated_delta");
    LINEAR("y = LinearAttention(q, k, k) {" HEADS ", update_rule=\"linear\"}", "z:float32[1]",
           "float32[1,1,3] 0 0 0|float32[1] 0",
           "heads of the key have 3 elements, but those of the query have 2");
    LINEAR("y = LinearAttention(q, k, k, z) {" HEADS ", update_rule=\"linear\"}",
           "z:float32[1,1,2,1]", "float32[1,1,2] 0 0|float32[1,1,2,1] 0 0",
           "past_state is float32[1,1,2,1], expected floats of [1,1,2,2]");
    LINEAR("y = LinearAttention(q, k, k, _, z) {" HEADS ", update_rule=\"gated\"}",
           "z:float32[1,1,3]", "float32[1,1,2] 0 0|float32[1,1,3] 0 0 0",
           "the decay is float32[1,1,3], expected a last size of 1 or 2");
}

static void others(void) {
#define CONV(node, types, inputs, message)                                                         \
    REFUSED(node, "x:float32[1,2,1], " types, "float32[1,2,1] 0 0|" inputs, message)
    CONV("y = CausalConvWithState(x, w)", "w:float32[1,1,2]", "float32[1,1,2] 0 0",
         "weight is float32[1,1,2], expected [2,1,k]");
    CONV("y = CausalConvWithState(x, w, b)", "w:float32[2,1,1], b:float32[3]",
         "float32[2,1,1] 0 0|float32[3] 0 0 0", "input bias is float32[3], expected 2 elements");
    CONV("y = CausalConvWithState(x, w, _, p)", "w:float32[2,1,1], p:float32[1,2,1]",
         "float32[2,1,1] 0 0|float32[1,2,1] 0 0",
         "past_state is float32[1,2,1], expected the type of input and [1,2,0]");
    CONV("y = CausalConvWithState(x, w) {activation=\"relu\"}", "w:float32[2,1,1]",
         "float32[2,1,1] 0 0", "activation is 'relu', expected none, silu or swish");
    REFUSED("y = SwiGLU(a, b)", "a:float32[2], b:float32[1]", "float32[2] 0 0|float32[1] 0",
            "input B is float32[1], expected the shape of A, float32[2]");
}

// In several stages: the second or the first stage fails when it runs.
static void in_stages(void) {
    REFUSED("a = MatMul(q, q) y = Attention(a, k, v)", QKV, Q "|" KV1 "|float32[1,1,1,2] 0 0",
            "batch, heads and length must be equal");
    REFUSED("a = Attention(q, k, v) y = Neg(a)", QKV, Q "|" KV1 "|float32[1,1,1,2] 0 0",
            "batch, heads and length must be equal");
}

int main(int argc, char **argv) {
    if (!run_text_start(argc, argv)) return 77;
    attention_shapes();
    attention_options();
    attention_masks();
    rotary();
    tensor_scatter();
    linear_attention();
    others();
    in_stages();
    CHECK_MSG(run_text_n_divided() >= 2, "%zu runs in stages", run_text_n_divided());
    run_text_finish();
    return test_finish();
}
