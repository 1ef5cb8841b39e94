"""Small random checkpoints of every architecture, made by transformers with fixed seeds; the names
state their purpose. All sizes are different, so that an exchange of two axes is noticed."""

import json

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SIZES = dict(vocab_size=97, hidden_size=48, intermediate_size=72, num_hidden_layers=3,
             num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=512,
             bos_token_id=1, eos_token_id=[2, 3], pad_token_id=0, tie_word_embeddings=False)

LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64)
LINEAR = dict(rope_type="linear", rope_theta=10000.0, factor=3.0)
LONG = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.7],
            long_factor=[2.0, 3.0, 4.0, 5.0], original_max_position_embeddings=256)
GEMMA_ROPE = dict(
    full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0),
    sliding_attention=dict(rope_type="default", rope_theta=10000.0))
GEMMA = dict(head_dim=16, sliding_window=5, final_logit_softcapping=3.0, query_pre_attn_scalar=24,
             layer_types=["sliding_attention", "full_attention", "sliding_attention"],
             rope_parameters=GEMMA_ROPE, tie_word_embeddings=True)

# name: (model type, changes of the configuration, type of the weights, size of the largest shard)
CASES = {
    "llama": ("llama", dict(), "float32", None),
    "llama-tied-head_dim": ("llama", dict(tie_word_embeddings=True, head_dim=10), "float32", None),
    "llama-biases": ("llama", dict(attention_bias=True, mlp_bias=True, num_key_value_heads=6),
                     "float32", None),
    "llama-linear-bf16": ("llama", dict(rope_parameters=LINEAR), "bfloat16", None),
    "llama-llama3-f16-shards": ("llama", dict(rope_parameters=LLAMA3), "float16", "40KB"),
    "llama-yarn": ("llama", dict(rope_parameters=YARN, num_key_value_heads=1), "float32", None),
    "mistral-window": ("mistral", dict(sliding_window=7), "bfloat16", None),
    "qwen2": ("qwen2", dict(tie_word_embeddings=True), "bfloat16", None),
    "qwen2-windows": ("qwen2", dict(use_sliding_window=True, sliding_window=6, max_window_layers=1),
                      "float32", None),
    "qwen3": ("qwen3", dict(head_dim=12, tie_word_embeddings=True), "bfloat16", "60KB"),
    "gpt2": ("gpt2", dict(), "float32", None),
    "gpt2-scales-f16": ("gpt2", dict(scale_attn_by_inverse_layer_idx=True, n_inner=40,
                                     activation_function="gelu"), "float16", None),
    "phi3-window-partial": ("phi3", dict(sliding_window=9, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)), "float32", None),
    "phi3-longrope": ("phi3", dict(rope_parameters=LONG), "bfloat16", None),
    "olmo2": ("olmo2", dict(), "bfloat16", None),
    "smollm3": ("smollm3", dict(no_rope_layers=[1, 0, 1], tie_word_embeddings=True), "bfloat16",
                None),
    "gemma3_text": ("gemma3_text", GEMMA, "float32", None),
    "gemma3_text-bf16": ("gemma3_text", GEMMA, "bfloat16", None),
    "gemma3_text-softcap": ("gemma3_text", GEMMA | dict(attn_logit_softcapping=1.5), "float32", None),
    # For a Gemma 3 with an image encoder, transformers applies no final softcap.
    "gemma3": ("gemma3", GEMMA | dict(final_logit_softcapping=None), "bfloat16", None),
}

# Keys as in older files, or missing: changes to config.json. DEL removes the key.
DEL = object()
OLD = dict(rope_parameters=DEL, layer_types=DEL, rope_theta=1e6)
EDITS = {
    "smollm3-old-windows": OLD | dict(use_sliding_window=True, sliding_window=6),
    "mistral-old": OLD | dict(sliding_window=DEL, num_key_value_heads=DEL, max_position_embeddings=DEL),
    "mistral-null": OLD | dict(sliding_window=None),
    "qwen2-old-null": OLD | dict(use_sliding_window=True, sliding_window=None, max_window_layers=1),
    "phi3-old": OLD | dict(rms_norm_eps=DEL, hidden_act=DEL, original_max_position_embeddings=256,
                           rope_scaling=dict(type="longrope", original_max_position_embeddings=128,
                                             **{k: LONG[k] for k in ("short_factor", "long_factor")})),
    "phi3-inner": OLD | dict(original_max_position_embeddings=DEL, rope_scaling=dict(
        type="longrope", **{k: v for k, v in LONG.items() if "_" in k and not k.startswith("rope")})),
    "llama-both": dict(rope_scaling=LINEAR),
    "llama-empty": dict(rope_scaling={}, rope_parameters=LINEAR),
    "llama-llama3-old": OLD | dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                                     high_freq_factor=4.0)),
    "llama-yarn-top": OLD | dict(original_max_position_embeddings=32, rope_scaling=dict(
        type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "llama-partial": OLD | dict(partial_rotary_factor=0.5),
    "gemma3_text-old": OLD | dict(num_key_value_heads=DEL, max_position_embeddings=DEL,
                                  query_pre_attn_scalar=DEL, hidden_activation=DEL, rms_norm_eps=DEL,
                                  tie_word_embeddings=DEL, rope_local_base_freq=2e4,
                                  sliding_window_pattern=2, rope_scaling=dict(rope_type="linear",
                                                                              factor=8.0)),
}
CHANGES = {"smollm3-old-windows": dict(no_rope_layers=[1, 0, 1]),
           "mistral-old": dict(num_attention_heads=8, num_key_value_heads=8),
           "gemma3_text-old": GEMMA | dict(num_attention_heads=8, num_key_value_heads=4)}
CASES |= {name: (name.split("-")[0], CHANGES.get(name, {}), "float32", None) for name in EDITS}

GPT2_NAMES = dict(hidden_size="n_embd", num_hidden_layers="n_layer", num_attention_heads="n_head",
                  max_position_embeddings="n_positions")


def make_config(model_type, changes):
    sizes = SIZES | changes
    if model_type == "gpt2":
        for key in ("intermediate_size", "num_key_value_heads"):
            del sizes[key]
        sizes = {GPT2_NAMES.get(k, k): v for k, v in sizes.items()}
        sizes["tie_word_embeddings"] = True
    if model_type == "gemma3":
        vision = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                      num_attention_heads=2, image_size=28, patch_size=14)
        return transformers.Gemma3Config(text_config=sizes, vision_config=vision,
                                         mm_tokens_per_image=1)
    return transformers.AutoConfig.for_model(model_type, **sizes)


def make(name, folder, seed):
    """Writes the checkpoint and returns the reference model: the same weights, in float32."""
    model_type, changes, dtype, shard = CASES[name]
    torch.manual_seed(seed)
    config = make_config(model_type, changes)
    kind = transformers.AutoModelForCausalLM
    if model_type == "gemma3":
        kind = transformers.Gemma3ForConditionalGeneration
        model = kind(config)
    else:
        model = kind.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases start as ones and zeros
            parameter.add_(torch.randn_like(parameter) * (0.1 if parameter.dim() == 1 else 0.15))
    model.to(getattr(torch, dtype)).save_pretrained(folder, **(
        dict(max_shard_size=shard) if shard else {}))
    path = folder / "config.json"
    says = json.loads(path.read_text()) | EDITS.get(name, {})
    path.write_text(json.dumps({k: v for k, v in says.items() if v is not DEL}))
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    # A bfloat16 model scales its embeddings by a bfloat16 value; the widened model would not.
    for module in model.modules():
        if hasattr(module, "scalar_embed_scale"):
            scale = torch.tensor(module.scalar_embed_scale).to(getattr(torch, dtype))
            module.embed_scale = scale.float()
    return model
