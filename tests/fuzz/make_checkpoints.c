// Writes seeds for fuzz_checkpoint into a folder: a complete checkpoint of each architecture, with
// the smallest possible sizes.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES                                                                                      \
    "\"vocab_size\":3,\"hidden_size\":4,\"intermediate_size\":5,\"num_hidden_layers\":1,"          \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"max_position_embeddings\":8,"           \
    "\"eos_token_id\":[1,2],\"bos_token_id\":0,"
#define L "model.layers.0."
#define QKV                                                                                        \
    L "self_attn.q_proj.weight 4 4;" L "self_attn.k_proj.weight 2 4;" L                            \
      "self_attn.v_proj.weight 2 4;" L "self_attn.o_proj.weight 4 4;"
#define BIASES                                                                                     \
    L "self_attn.q_proj.bias 4;" L "self_attn.k_proj.bias 2;" L "self_attn.v_proj.bias 2;"
#define MLP L "mlp.gate_proj.weight 5 4;" L "mlp.up_proj.weight 5 4;" L "mlp.down_proj.weight 4 5;"
#define BEFORE L "input_layernorm.weight 4;" L "post_attention_layernorm.weight 4;"
#define ENDS "model.embed_tokens.weight 3 4;model.norm.weight 4;"
#define HEAD "lm_head.weight 3 4;"
#define HEAD_NORMS L "self_attn.q_norm.weight 2;" L "self_attn.k_norm.weight 2;"

static const struct {
    const char *name, *config, *tensors;
} seeds[] = {
    {"llama",
     SIZES "\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
           "\"low_freq_factor\":1,\"high_freq_factor\":4,"
           "\"original_max_position_embeddings\":4}",
     QKV MLP BEFORE ENDS HEAD},
    {"mistral",
     SIZES "\"model_type\":\"mistral\",\"sliding_window\":3,\"rope_parameters\":{"
           "\"rope_type\":\"yarn\",\"factor\":2,\"rope_theta\":1e4,\"mscale\":1,"
           "\"mscale_all_dim\":2,\"original_max_position_embeddings\":4}",
     QKV MLP BEFORE ENDS HEAD},
    {"qwen2",
     SIZES "\"model_type\":\"qwen2\",\"tie_word_embeddings\":true,\"use_sliding_window\":true,"
           "\"sliding_window\":2,\"max_window_layers\":0",
     QKV BIASES MLP BEFORE ENDS},
    {"qwen3",
     SIZES "\"model_type\":\"qwen3\",\"head_dim\":2,\"layer_types\":[\"full_attention\"],"
           "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}",
     QKV MLP BEFORE ENDS HEAD HEAD_NORMS},
    {"phi3",
     SIZES "\"model_type\":\"phi3\",\"original_max_position_embeddings\":4,\"rope_scaling\":{"
           "\"type\":\"longrope\",\"short_factor\":[1],\"long_factor\":[2]}",
     L "self_attn.qkv_proj.weight 8 4;" L "self_attn.o_proj.weight 4 4;" L
       "mlp.gate_up_proj.weight 10 4;" L "mlp.down_proj.weight 4 5;" BEFORE ENDS HEAD},
    {"olmo2", SIZES "\"model_type\":\"olmo2\"",
     QKV MLP L "post_attention_layernorm.weight 4;" L "post_feedforward_layernorm.weight 4;" L
               "self_attn.q_norm.weight 4;" L "self_attn.k_norm.weight 2;" ENDS HEAD},
    {"smollm3", SIZES "\"model_type\":\"smollm3\",\"no_rope_layers\":[0]", QKV MLP BEFORE ENDS},
    {"gemma3",
     SIZES "\"model_type\":\"gemma3_text\",\"head_dim\":2,\"sliding_window\":2,"
           "\"final_logit_softcapping\":30,\"attn_logit_softcapping\":50",
     QKV MLP BEFORE L "pre_feedforward_layernorm.weight 4;" L
                      "post_feedforward_layernorm.weight 4;" ENDS HEAD_NORMS},
    {"gpt2",
     "\"model_type\":\"gpt2\",\"vocab_size\":3,\"n_embd\":4,\"n_layer\":1,\"n_head\":2,"
     "\"n_positions\":8,\"n_inner\":5",
     "wte.weight 3 4;wpe.weight 8 4;ln_f.weight 4;ln_f.bias 4;h.0.ln_1.weight 4;h.0.ln_1.bias 4;"
     "h.0.ln_2.weight 4;h.0.ln_2.bias 4;h.0.attn.c_attn.weight 4 12;h.0.attn.c_attn.bias 12;"
     "h.0.attn.c_proj.weight 4 4;h.0.attn.c_proj.bias 4;h.0.mlp.c_fc.weight 4 5;h.0.mlp.c_fc.bias "
     "5;"
     "h.0.mlp.c_proj.weight 5 4;h.0.mlp.c_proj.bias 4;"},
};

// Writes "NAME ROWS COLUMNS;..." as the JSON of a safetensors header. Returns the bytes of tensor
// data.
static size_t write_header(const char *tensors, const char *type, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "{"), end = 0;
    while (*tensors) {
        char name[128];
        int rows, columns, used,
            n_dims = sscanf(tensors, "%127s %d %d%n", name, &rows, &columns, &used);
        if (n_dims < 2) exit(1);
        size_t count = (size_t)rows * (n_dims == 3 ? (size_t)columns : 1);
        size_t begin = end;
        end += count * (strcmp(type, "F32") ? 2 : 4);
        at += (size_t)snprintf(out + at, size - at, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%d",
                               at > 1 ? "," : "", name, type, rows);
        if (n_dims == 3) at += (size_t)snprintf(out + at, size - at, ",%d", columns);
        at += (size_t)snprintf(out + at, size - at, "],\"data_offsets\":[%zu,%zu]}", begin, end);
        tensors = strchr(tensors, ';') + 1;
    }
    snprintf(out + at, size - at, "}");
    return end;
}

static void write_seed(const char *folder, size_t i, int option) {
    char path[4096], config[2048], header[8192];
    snprintf(path, sizeof path, "%s/%s_%d", folder, seeds[i].name, option);
    size_t n_config = (size_t)snprintf(config, sizeof config, "{%s}", seeds[i].config);
    size_t n_data = write_header(seeds[i].tensors, option ? "BF16" : "F32", header, sizeof header);
    const unsigned char start[5] = {(unsigned char)option, (unsigned char)n_config,
                                    (unsigned char)(n_config >> 8), (unsigned char)n_data,
                                    (unsigned char)(n_data >> 8)};
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(start, 1, 5, file) != 5 || fputs(config, file) < 0 ||
        fputs(header, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 1;
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        for (int option = 0; option <= 2; option += 2)
            write_seed(argv[1], i, option);
    return 0;
}
