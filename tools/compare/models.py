"""The model that all programs run, in each program's own format: a checkpoint with the shape of
Qwen2.5-0.5B and random weights. Files are made once and kept."""
import json
import os
import pathlib
import subprocess

HEAD_DIM = 64
SHAPE = dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
             num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768,
             tie_word_embeddings=True, rms_norm_eps=1e-6)
GGML_BITS = {"F32": 32, "BF16": 16, "Q8_0": 8.5, "Q4_0": 4.5}  # per weight, with a float16 scale per block


def _counts():
    """Number of weights in the layers' matrices, in the head, and in norms and biases."""
    hidden, inner, layers = SHAPE["hidden_size"], SHAPE["intermediate_size"], SHAPE["num_hidden_layers"]
    keys = SHAPE["num_key_value_heads"] * HEAD_DIM
    matrices = layers * (2 * hidden * hidden + 2 * keys * hidden + 3 * inner * hidden)
    vectors = layers * (2 * hidden + hidden + 2 * keys) + hidden
    return matrices, SHAPE["vocab_size"] * hidden, vectors


def bytes_per_step(matrix, head, vector):
    """Bytes of weights that one step reads, if a weight has so many bits. The head reads the whole
    embedding table."""
    return int(sum(n * bits for n, bits in zip(_counts(), (matrix, head, vector))) / 8)


def _made(path, make):
    """Makes a file under another name first, so that an interrupted run leaves none behind."""
    if not path.exists():
        part = path.with_name("part-" + path.name)
        make(part)
        os.replace(part, path)
    return path


def checkpoint(folder, dtype):
    """A Hugging Face folder."""
    def make(part):
        import torch
        from transformers import Qwen2Config, Qwen2ForCausalLM
        torch.manual_seed(0)
        Qwen2ForCausalLM(Qwen2Config(**SHAPE)).to(getattr(torch, dtype)).save_pretrained(part)
    return _made(folder / dtype, make)


def exported(ree_run, folder, dtype, name, options):
    """An ONNX model that `ree-run export` writes next to the checkpoint. Unquantised weights stay in
    the checkpoint's file."""
    path = checkpoint(folder, dtype) / f"{name}.onnx"
    if not path.exists():
        subprocess.run([ree_run, "export", str(path.parent), "-o", str(path), *options], check=True,
                       stdout=subprocess.DEVNULL)
    return path


def for_onnxruntime(ree_run, folder, dtype, name, options, accuracy_level):
    """An exported model that computes only the logits of the last token."""
    import onnx
    source = exported(ree_run, folder, dtype, name, options)

    def make(part):
        model = onnx.load(source, load_external_data=False)
        graph = model.graph
        head = next(node for node in graph.node if "logits" in node.output)
        while head.op_type != "MatMul":
            head = next(node for node in graph.node if head.input[0] in node.output)
        at = list(graph.node).index(head)
        for i, (label, value) in enumerate((("starts", -1), ("ends", 2**31), ("axes", 1))):
            graph.initializer.append(onnx.helper.make_tensor(f"last_{label}", onnx.TensorProto.INT64, [1], [value]))
        graph.node.insert(at, onnx.helper.make_node(
            "Slice", [head.input[0], "last_starts", "last_ends", "last_axes"], ["last_row"]))
        head.input[0] = "last_row"
        next(o for o in graph.output if o.name == "logits").type.tensor_type.shape.dim[1].dim_value = 1
        for node in graph.node:
            if node.op_type == "MatMulNBits" and accuracy_level:
                node.attribute.append(onnx.helper.make_attribute("accuracy_level", accuracy_level))
        onnx.save(model, part)
    return _made(source.with_name(f"{name}-last-{accuracy_level}.onnx"), make)


def gguf_file(folder, dtype, matrix, head):
    """A GGUF file: matrices of the layers and embedding table in these types of ggml, the rest float32.
    As in the checkpoint, the head is the embedding table."""
    import gguf
    from safetensors import safe_open

    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
             "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}

    def name_of(name):
        stem, kind = name.rsplit(".", 1)
        if stem in names:
            return f"{names[stem]}.{kind}"
        _, _, layer, inner = stem.split(".", 3)
        return f"blk.{layer}.{names[inner]}.{kind}"

    def make(part):
        writer = gguf.GGUFWriter(part, "qwen2")
        config = json.loads((checkpoint(folder, dtype) / "config.json").read_text())
        writer.add_context_length(SHAPE["max_position_embeddings"])
        writer.add_embedding_length(SHAPE["hidden_size"])
        writer.add_block_count(SHAPE["num_hidden_layers"])
        writer.add_feed_forward_length(SHAPE["intermediate_size"])
        writer.add_head_count(SHAPE["num_attention_heads"])
        writer.add_head_count_kv(SHAPE["num_key_value_heads"])
        writer.add_layer_norm_rms_eps(SHAPE["rms_norm_eps"])
        writer.add_rope_freq_base(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])
        writer.add_tokenizer_model("none")
        writer.add_vocab_size(SHAPE["vocab_size"])
        with safe_open(checkpoint(folder, dtype) / "model.safetensors", "pt") as weights:
            for name in weights.keys():
                x = weights.get_tensor(name).float().numpy()
                kind = "F32" if x.ndim == 1 else head if "embed_tokens" in name else matrix
                kind = gguf.GGMLQuantizationType[kind]
                data = gguf.quants.quantize(x, kind)
                writer.add_tensor(name_of(name), data, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return _made(folder / f"{matrix}-{head}.gguf", make)


def read(paths):
    """Reads the files of models once, so that they are in the page cache. ONNX models are beside the
    files of their weights."""
    paths = {pathlib.Path(path) for path in paths}
    files = {path for path in paths if path.suffix == ".gguf"}
    for folder in {path if path.is_dir() else path.parent for path in paths - files}:
        files.update(folder.glob("*.safetensors"), folder.glob("*.data"))
    for file in files:
        with open(file, "rb") as f:
            while f.read(1 << 24):
                pass
