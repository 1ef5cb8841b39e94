// Errors for invalid nodes of com.microsoft: a status and a message that names what was expected.
#include "lower/node.h"
#include "test.h"

#include <string.h>

// A case, with inputs and attributes as for test_node_text.
static const struct wrong {
    const char *op, *inputs, *attrs;
    enum ree_status status;
    const char *message;
} cases[] = {
    {"FusedMatMul", "i2,3 i3,2", "", REE_UNSUPPORTED, "FusedMatMul of int32 is not supported"},
    {"FusedMatMul", "f2,3 f3,2", "transA=1", REE_INVALID,
     "cannot multiply float32[3,2] by float32[3,2]"},
    {"FusedConv", "f1,1,3,3 f1,1,3,3 - f1,1,2,1", "", REE_INVALID,
     "input Z is float32[1,1,2,1], expected float32[1,1,1,1] like the output"},
    {"NhwcMaxPool", "f3,3", "", REE_INVALID, "input x has rank 2, expected 3 to 5"},
    {"BiasGelu", "f2,3 f2", "", REE_INVALID, "input B is float32[2], expected 3 elements"},
    {"FastGelu", "f f3", "", REE_INVALID, "has rank 0, expected at least 1"},
    {"BiasSplitGelu", "f1,2,3 f3", "", REE_INVALID, "a last dimension of 3, expected even"},
    {"BiasAdd", "f1,2,4 f4 f1,3,4", "", REE_INVALID,
     "cannot broadcast float32[1,3,4] to float32[1,2,4]"},
    {"SkipLayerNormalization", "f2,3,4 f2,4 f4", "", REE_INVALID,
     "input skip is float32[2,4], expected the shape of the input, float32[2,3,4], with or without "
     "its"},
    {"SkipLayerNormalization", "f2,3,4 f2,3,4 f3", "", REE_INVALID,
     "input gamma is float32[3], expected 4 elements"},
    {"SkipSimplifiedLayerNormalization", "f4 f4 f4", "", REE_INVALID,
     "input input has rank 1, expected 2 to 3"},
    {"EmbedLayerNormalization", "i1,2 - f3,4 f1,4 - f4 f4", "", REE_INVALID,
     "input position_embedding has 1 rows, expected 2 or more"},
    {"EmbedLayerNormalization", "i1,2 i1,2 f3,4 f2,4 - f4 f4", "", REE_INVALID,
     "segment_ids and segment_embedding are expected together"},
    {"EmbedLayerNormalization", "i1,2 - f3,4 f2,4 - f4", "", REE_INVALID,
     "input beta is required but omitted"},
    {"EmbedLayerNormalization", "i1,2 - f3,5 f2,4 - f4 f4", "", REE_INVALID,
     "input word_embedding has rows of 5 elements, expected 4"},
    {"GroupNorm", "f1,2,2,4 f4 f4", "groups=3 activation=0", REE_INVALID,
     "X has 4 channels, which is not a multiple of num_groups = 3"},
    {"GroupNorm", "f1,2,2,4 f4 f4", "groups=2 activation=2", REE_INVALID,
     "activation is 2, expected 0 or 1"},
    {"Attention", "f1,2,4 f4,6", "num_heads=0", REE_INVALID, "num_heads is 0, expected 1 or more"},
    {"Attention", "f1,2,4 f4,6", "num_heads=4", REE_INVALID,
     "2 columns of the weights for queries, keys or values, expected a multiple of num_heads = 4"},
    {"Attention", "f1,2,4 f4,6 - i1,3", "num_heads=1", REE_UNSUPPORTED,
     "the mask is int32[1,3], expected int32 of (1,2), (1,2,2), (1) or (2)"},
    {"Attention", "f1,2,4 f4,6 - - f1,1,1,2,2", "num_heads=1", REE_INVALID,
     "past is float32[1,1,1,2,2], expected float32 (2,1,1,length,size)"},
    {"Attention", "f1,2,4 f4,6 - - - f1,1,2,3", "num_heads=1", REE_INVALID,
     "attention_bias is float32[1,1,2,3], expected (1 or 1,1 or 1,2,2)"},
    {"Attention", "f1,2,4 f4,6", "num_heads=1 do_rotary=1", REE_UNSUPPORTED,
     "do_rotary is not supported"},
    {"MultiHeadAttention", "f1,2,4 f1,2,4", "num_heads=2", REE_INVALID,
     "key and value are expected together, or packed in one input"},
    {"MultiHeadAttention", "f1,2,4", "num_heads=2", REE_INVALID,
     "the packed query is float32[1,2,4], expected (batch,length,2,3,size)"},
    {"MultiHeadAttention", "f1,2,4 f1,2,4 f1,2,4 f11", "num_heads=2", REE_INVALID,
     "input bias is float32[11], expected 12 elements"},
    {"MultiHeadAttention", "f1,2,4 f1,2,4 f1,2,4 - - - f1,2,3,3", "num_heads=2", REE_INVALID,
     "past_key and past_value are expected together"},
    {"MultiHeadAttention", "f1,2,4 f1,2,4 f1,2,4 - - - f1,2,3,3 f1,2,3,3", "num_heads=2",
     REE_INVALID, "past_key is float32[1,2,3,3], expected the type and shape of"},
    {"DecoderMaskedMultiHeadAttention", "f1,2,4 f1,2,4 f1,2,4", "num_heads=2", REE_INVALID,
     "query has length 2, expected 1"},
    {"DecoderMaskedMultiHeadAttention", "f1,1,4 f1,1,4 f1,1,4 - - f1,2,0,2 f1,2,0,2 i1",
     "num_heads=2 past_present_share_buffer=1", REE_INVALID, "which must be 1 or more"},
    {"GroupQueryAttention", "f1,2,16 f1,2,8 f1,2,8 - - i1", "num_heads=2 kv_num_heads=1",
     REE_INVALID, "input total_sequence_length is required but omitted"},
    {"GroupQueryAttention", "f1,2,16 f1,2,8 f1,2,8 - - i1 i", "num_heads=2 kv_num_heads=1",
     REE_INVALID, "total_sequence_length is 0, expected 2 to 2"},
    {"GroupQueryAttention", "f1,2,16 f1,2,8 f1,2,8 - - i2 i", "num_heads=2 kv_num_heads=1",
     REE_INVALID, "seqlens_k is int32[2], expected 1 int32"},
    {"GroupQueryAttention", "f1,2,16 f1,2,8 f1,2,8 - - i1 i", "num_heads=3 kv_num_heads=2",
     REE_INVALID, "expected the first to be a multiple of the second"},
    {"GroupQueryAttention", "f1,2,16 - - - - i1 i", "num_heads=2 kv_num_heads=2", REE_INVALID,
     "the packed query has rows of 16 elements, expected a multiple of the 6 heads"},
    {"Unique", "f2,3", "", REE_INVALID, "input x has rank 2, expected 1"},
    {"RotaryEmbedding", "f1,2,4 l3 f5,2 f5,2", "", REE_INVALID,
     "position_ids is int64[3], expected int64 of (1) or (1,2)"},
    {"RotaryEmbedding", "f1,1,2,4 l1 f5,3 f5,3", "", REE_INVALID,
     "cos_cache has rows of 3 elements, expected half of the head size 4"},
    {"RotaryEmbedding", "f1,2,4 l1 f5,2 f5,2", "rotary_embedding_dim=2 num_heads=1", REE_INVALID,
     "rotary_embedding_dim is 2, expected twice the 2 columns of cos_cache"},
};

int main(void) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wrong *c = &cases[i];
        struct test_node n;
        test_node_start(&n, c->op, 1);
        n.node.domain = "com.microsoft";
        test_node_text(&n, c->inputs, c->attrs);
        n.err.message[0] = 0;
        enum ree_status got = test_node_run(&n, 1);
        CHECK_MSG(got == c->status && strstr(n.err.message, c->message),
                  "%s(%s) %s: got %s: '%s', expected %s: '%s'", c->op, c->inputs, c->attrs,
                  ree_status_name(got), n.err.message, ree_status_name(c->status), c->message);
        test_node_finish(&n);
    }
    return test_finish();
}
