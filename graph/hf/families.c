// The architectures, one entry each. Names and values come from the `transformers` library.
#include "graph/hf/config.h"

#include <string.h>

#include "graph/hf/hf.h"

static const struct ree_family families[] = {
    {.model_type = "llama", .norm_eps = 1e-6, .theta = 1e4, .context = 2048},
    {.model_type = "mistral",
     .sliding = REE_SLIDING_ALL,
     .norm_eps = 1e-6,
     .theta = 1e4,
     .context = 131072,
     .kv_heads = 8,
     .window = 4096},
    {.model_type = "qwen2",
     .sliding = REE_SLIDING_LISTED,
     .bias_on_qkv = true,
     .norm_eps = 1e-6,
     .theta = 1e4,
     .context = 32768,
     .kv_heads = 32,
     .window = 4096},
    {.model_type = "qwen3",
     .sliding = REE_SLIDING_LISTED,
     .qk_norm = REE_QK_HEAD,
     .norm_eps = 1e-6,
     .theta = 1e4,
     .context = 32768,
     .kv_heads = 32,
     .window = 4096},
    {.model_type = "phi3",
     .sliding = REE_SLIDING_ALL,
     .fused = true,
     .norm_eps = 1e-5,
     .theta = 1e4,
     .context = 4096,
     .original_context = 4096},
    {.model_type = "olmo2",
     .norm_place = REE_NORM_AFTER,
     .qk_norm = REE_QK_WHOLE,
     .norm_eps = 1e-5,
     .theta = 1e4,
     .context = 2048},
    {.model_type = "smollm3",
     .sliding = REE_SLIDING_LISTED,
     .tied = true,
     .norm_eps = 1e-6,
     .theta = 2e6,
     .context = 32768,
     .kv_heads = 4},
    {.model_type = "gemma3_text",
     .norm = REE_NORM_RMS_PLUS_ONE,
     .norm_place = REE_NORM_AROUND,
     .qk_norm = REE_QK_HEAD,
     .sliding = REE_SLIDING_LISTED,
     .tied = true,
     .norm_eps = 1e-6,
     .theta = 1e6,
     .context = 131072,
     .kv_heads = 4,
     .window = 4096},
    {.model_type = "gemma3",
     .text_config = "text_config",
     .norm = REE_NORM_RMS_PLUS_ONE,
     .norm_place = REE_NORM_AROUND,
     .qk_norm = REE_QK_HEAD,
     .sliding = REE_SLIDING_LISTED,
     .tied = true,
     .norm_eps = 1e-6,
     .theta = 1e6,
     .context = 131072,
     .kv_heads = 4,
     .window = 4096},
    {.model_type = "gpt2",
     .norm = REE_NORM_LAYER,
     .is_gpt2 = true,
     .fused = true,
     .tied = true,
     .norm_eps = 1e-5,
     .theta = 1e4,
     .context = 1024},
};

const struct ree_family *ree_family_at(size_t i) {
    return i < sizeof families / sizeof families[0] ? &families[i] : NULL;
}

bool ree_hf_knows(const char *model_type) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].model_type, model_type) == 0) return true;
    return false;
}
