#!/usr/bin/env python3
"""Valid and invalid checkpoint folders with ree-run: messages of export for malformed files,
permitted locations of a model, and links that are followed. The files are written byte by byte, so
only Python is needed."""

import argparse
import hashlib
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import tempfile

CONFIG = {"model_type": "llama", "vocab_size": 8, "hidden_size": 4, "intermediate_size": 6,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
          "max_position_embeddings": 16, "tie_word_embeddings": True}
SHAPES = {"model.embed_tokens.weight": [8, 4], "model.norm.weight": [4],
          "model.layers.0.input_layernorm.weight": [4],
          "model.layers.0.post_attention_layernorm.weight": [4],
          "model.layers.0.self_attn.q_proj.weight": [4, 4],
          "model.layers.0.self_attn.k_proj.weight": [2, 4],
          "model.layers.0.self_attn.v_proj.weight": [2, 4],
          "model.layers.0.self_attn.o_proj.weight": [4, 4],
          "model.layers.0.mlp.gate_proj.weight": [6, 4],
          "model.layers.0.mlp.up_proj.weight": [6, 4],
          "model.layers.0.mlp.down_proj.weight": [4, 6]}
# The additional tensors of a Gemma 3.
GEMMA = {"model.layers.0.pre_feedforward_layernorm.weight": [4],
         "model.layers.0.post_feedforward_layernorm.weight": [4],
         "model.layers.0.self_attn.q_norm.weight": [2],
         "model.layers.0.self_attn.k_norm.weight": [2]}
ALL_SHAPES = SHAPES | GEMMA
RUN = ["--random-inputs", "3", "--dim", "sequence=3", "--dim", "past_sequence=0",
       "--dim", "total_sequence=3"]

n_passed = n_failed = 0
ree_run = None


def check(what, condition, shown=""):
    global n_passed, n_failed
    n_passed += bool(condition)
    n_failed += not condition
    if not condition:
        print(f"FAILED: {what}: {shown}")


def weights(names=SHAPES):
    """Pseudo-random float32 tensors; each depends only on its name."""
    tensors = {}
    for name in names:
        count = 1
        for size in ALL_SHAPES[name]:
            count *= size
        state, values = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16), []
        for _ in range(count):
            state = (state * 1103515245 + 12345) % 2**31
            values.append(state / 2**30 - 1)
        tensors[name] = struct.pack(f"<{count}f", *values)
    return tensors


def header_of(tensors, begin=0):
    header = {}
    for name, data in tensors.items():
        header[name] = {"dtype": "F32", "shape": ALL_SHAPES[name],
                        "data_offsets": [begin, begin + len(data)]}
        begin += len(data)
    return header


def safetensors(tensors, change=None, pad=0):
    header = header_of(tensors)
    if change:
        change(header)
    text = json.dumps(header).encode() + b" " * pad
    return struct.pack("<Q", len(text)) + text + b"".join(tensors.values())


def write(folder, config=CONFIG, data=None):
    folder.mkdir(parents=True)
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    (folder / "model.safetensors").write_bytes(safetensors(weights()) if data is None else data)
    return folder


def run(*arguments, **how):
    done = subprocess.run([ree_run, *map(str, arguments)], capture_output=True, text=True, **how)
    return done.returncode, done.stdout, done.stderr


def digest(model):
    code, out, err = run(model, *RUN)
    check(f"{model} runs", code == 0, err)
    return out.splitlines()[-1] if code == 0 else err


def refuses(what, folder, *parts, options=()):
    before = set(folder.rglob("*")) if folder.exists() else set()
    code, out, err = run("export", folder, *options)
    check(what, code == 1 and out == "" and all(p in err for p in parts), err)
    check(f"{what}: nothing is left behind", not folder.exists() or
          set(folder.rglob("*")) == before)


def test_headers(work):
    def entry(**changes):
        return lambda header: header["model.norm.weight"].update(changes)

    good, norm = weights(), "tensor 'model.norm.weight'"
    wrong = {
        "empty": (b"", "too short"),
        "short": (b"\x01\x02", "too short"),
        "header beyond the file": (struct.pack("<Q", 2**62) + b"{}", "truncated"),
        "large header": (struct.pack("<Q", 40 << 20) + b" " * (40 << 20), "the maximum is"),
        "no JSON": (struct.pack("<Q", 4) + b"{:1}", "its header", "not JSON"),
        "a list": (struct.pack("<Q", 2) + b"[]", "not a JSON object"),
        "deep": (struct.pack("<Q", 100000) + b"[" * 100000, "64 levels"),
        "a zero byte": (struct.pack("<Q", 4) + b"{}\0 ", "zero byte"),
        "cut": (safetensors(good)[:-5], "the file has"),
        "longer": (safetensors(good) + b"x", "belongs to no tensor"),
        "unknown type": (safetensors(good, entry(dtype="F5")), norm, "'F5' is unknown"),
        "no type": (safetensors(good, entry(dtype=None)), norm, "'dtype' is missing"),
        "type is a number": (safetensors(good, entry(dtype=5)), norm, "'dtype' is not a string"),
        "negative size": (safetensors(good, entry(shape=[-4])), norm, "dimension 0"),
        "fraction": (safetensors(good, entry(shape=[4.5])), norm, "dimension 0"),
        "rank": (safetensors(good, entry(shape=[1] * 8 + [4])), norm, "more than 8 dimensions"),
        "product overflows": (safetensors(good, entry(shape=[2**32, 2**32])), norm, "too many"),
        "shape and offsets": (safetensors(good, entry(shape=[5])), norm, "requires 20 bytes"),
        "no offsets": (safetensors(good, entry(data_offsets=None)), norm, "data_offsets"),
        "one offset": (safetensors(good, entry(data_offsets=[0])), norm, "data_offsets"),
        "backwards": (safetensors(good, entry(data_offsets=[16, 0])), norm, "data_offsets"),
        "beyond the file": (safetensors(good, entry(data_offsets=[2**40, 2**40 + 16])), norm,
                            "the file has"),
        "overlap": (safetensors(good, entry(data_offsets=[4, 20])), "overlap"),
        "not an object": (safetensors(good, lambda h: h.update(x=3)), "tensor 'x'"),
    }
    for what, (data, *parts) in wrong.items():
        folder = write(work / what.replace(" ", "_"), data=data)
        refuses(what, folder, "model.safetensors", *parts)
    twice = header_of(good)
    for what, escape in (("a NUL in a name", "\\u0000"), ("a control character", "\x01")):
        text = json.dumps(header_of(good)).replace('"model.norm.weight"', f'"model.norm.weight{escape}x"')
        refuses(what, write(work / what.replace(" ", "_"), data=struct.pack("<Q", len(text)) + text.encode()
                                + b"".join(good.values())), "its header", "in a string")
    text = json.dumps(twice)[:-1] + ", " + json.dumps(
        {"model.norm.weight": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})[1:]
    refuses("a name twice", write(work / "twice", data=struct.pack("<Q", len(text)) + text.encode()
                                  + b"".join(good.values())), "occurs twice")


def test_tensors(work):
    rest = weights([n for n in SHAPES if n != "model.layers.0.mlp.up_proj.weight"])
    refuses("missing tensor", write(work / "missing", data=safetensors(rest)),
            "'model.layers.0.mlp.up_proj.weight' is missing", "[6,4]")
    refuses("wrong shape", write(work / "shape", CONFIG | {"intermediate_size": 5}),
            "gate_proj.weight' is float32[6,4], expected [5,4]")
    def integers(header):
        header["model.norm.weight"]["dtype"] = "I32"

    refuses("wrong type", write(work / "type", data=safetensors(weights(), integers)),
            "'model.norm.weight' is int32[4]", "bfloat16")
    refuses("no head", write(work / "head", CONFIG | {"tie_word_embeddings": False}),
            "'lm_head.weight' is missing")


def test_configs(work):
    wrong = {
        "not JSON": ("{", "config.json", "not JSON"),
        "a list": ("[]", "not a JSON object"),
        "no type": ({}, "'model_type' is missing"),
        "unknown": (CONFIG | {"model_type": "mamba"}, "'mamba' cannot be exported", "llama",
                    "gpt2"),
        "no size": ({k: v for k, v in CONFIG.items() if k != "hidden_size"},
                    "'hidden_size' is missing"),
        "a string": (CONFIG | {"hidden_size": "4"}, "'hidden_size' is not a number"),
        "negative": (CONFIG | {"num_hidden_layers": -1}, "'num_hidden_layers' is -1"),
        "huge": (CONFIG | {"num_hidden_layers": 10**9}, "from 1 to 4096"),
        "fraction": (CONFIG | {"hidden_size": 4.5}, "4.5"),
        "infinite": (json.dumps(CONFIG)[:-1] + ', "rms_norm_eps": 1e999}', "'rms_norm_eps' is inf"),
        "NaN": (json.dumps(CONFIG)[:-1] + ', "rms_norm_eps": NaN}', "not JSON"),
        "heads": (CONFIG | {"num_attention_heads": 3, "num_key_value_heads": 2}, "is not a multiple of"),
        "indivisible": (CONFIG | {"num_attention_heads": 3, "num_key_value_heads": 1},
                        "not divisible"),
        "activation": (CONFIG | {"hidden_act": "tanhshrink"}, "'tanhshrink' is not supported"),
        "bool": (CONFIG | {"attention_bias": 1}, "'attention_bias' is not true or false"),
        "dynamic": (CONFIG | {"rope_scaling": {"type": "dynamic", "factor": 2}},
                    "'dynamic' changes the angles"),
        "mrope": (CONFIG | {"rope_scaling": {"type": "mrope"}}, "'mrope' is unknown"),
        "no factor": (CONFIG | {"rope_scaling": {"type": "linear"}}, "'factor' is missing"),
        "zero factor": (CONFIG | {"rope_scaling": {"type": "linear", "factor": 0}}, "'factor' is 0"),
        "two ropes": ({"model_type": "gemma3", "text_config": CONFIG | {
            "rope_scaling": {"factor": 2}, "rope_parameters": {}}}, "are both present"),
        "part of a scaled rope": (CONFIG | {"partial_rotary_factor": 0.5, "rope_scaling": {
            "type": "linear", "factor": 2}}, "'partial_rotary_factor' with scaling"),
        "rope is a number": (CONFIG | {"rope_scaling": 3}, "not an object"),
        "odd head": (CONFIG | {"head_dim": 3}, "an even number"),
        "types": (CONFIG | {"model_type": "qwen3", "layer_types": ["a", "b"]}, "list of 1 names"),
        "a type": (CONFIG | {"model_type": "qwen3", "layer_types": ["linear_attention"]},
                   "'linear_attention'"),
        "quantised": (CONFIG | {"quantization_config": {}}, "the weights are already quantised"),
        "eos": (CONFIG | {"eos_token_id": "</s>"}, "'eos_token_id'"),
    }
    for what, (config, *parts) in wrong.items():
        folder = write(work / ("config_" + what.replace(" ", "_")), config)
        refuses(f"config: {what}", folder, "config.json", *parts)


def test_shards(work, expected):
    folder = write(work / "shards")
    names = sorted(SHAPES)
    parts = {"a.safetensors": names[:4], "b.safetensors": names[4:]}
    os.remove(folder / "model.safetensors")
    refuses("no weights", folder, "neither model.safetensors nor")
    for file, part in parts.items():
        (folder / file).write_bytes(safetensors(weights(part)))

    def index(changes):
        where = {n: f for f, part in parts.items() for n in part} | changes
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))

    index({})
    check("shards", digest(folder) == expected)
    index({"model.norm.weight": "c.safetensors"})
    refuses("missing shard", folder, "shard 'c.safetensors'", "no such file")
    index({"model.norm.weight": "../shards/a.safetensors"})
    refuses("a shard elsewhere", folder, "has '..'")
    index({"model.norm.weight": "/etc/passwd"})
    refuses("a shard anywhere", folder, "absolute path")
    index({"other": "a.safetensors"})
    refuses("a tensor that no shard has", folder, "'other' is not in 'a.safetensors'")
    index({names[0]: "b.safetensors"})
    refuses("in another shard", folder, f"'{names[0]}' is not in 'b.safetensors'")
    index({})
    (folder / "b.safetensors").write_bytes(safetensors(weights(names[3:])))
    refuses("in two shards", folder, "occurs twice")


def test_places(work, folder, expected):
    code, out, err = run("export", folder)
    check("default place", code == 0 and out == f"{folder}/model.onnx\n", err)
    check("exported", digest(folder / "model.onnx") == expected)
    first = (folder / "model.onnx").read_bytes()
    run("export", folder)
    check("again: the same bytes", (folder / "model.onnx").read_bytes() == first)
    code, _, err = run("export", folder, "-o", work / "x.onnx")
    check("elsewhere", code == 1 and "--colocate-tensors" in err, err)
    code, _, err = run("export", folder, "-o", work / "x.onnx", "--colocate-tensors")
    check("colocated", code == 0, err)
    check("colocated: the same", digest(work / "x.onnx") == expected)
    check("mode of a result", (work / "x.onnx.data").stat().st_mode & 0o444 != 0o400)
    for name in ("model.safetensors", "config.json", ".onnx"):
        code, _, err = run("export", folder, "-o", folder / name)
        check(f"-o {name}", code == 1 and "does not end in .onnx" in err, err)
    code, _, err = run("export", folder, "-o", work / "none" / "x.onnx")
    check("no folder", code == 1 and "its folder" in err, err)
    code, _, err = run("export", work / "none")
    check("no checkpoint", code == 1 and "No such file" in err, err)
    code, _, err = run(work / "none", *RUN)
    check("no model", code == 1 and "No such file" in err, err)
    for wrong in (["--opset", "18"], ["--quantize", "5"], ["--block", "32"],
                  ["--quantize", "4", "--block", "48"], ["--what"], []):
        code, _, _ = run("export", *([folder, *wrong] if wrong else []))
        check(f"usage {wrong}", code == 2)


def generated(model, *options):
    """Returns the text's length, how it ended, and the receipt's body."""
    receipt = model.parent / "receipt.json"
    code, out, err = run(model, "--prompt-ids", "1,2,3", "--json", "--receipt-path", receipt, "--threads", 1,
                         *options)
    check(f"{model} generates", code == 0, err)
    if code:
        return 0, err, {}
    result, body = json.loads(out), json.loads(receipt.read_text())["body"]
    return len(result["prompt_tokens"] + result["tokens"]), result["finish_reason"], body


def test_contexts(work):
    """A model is not run beyond its context length, whichever file states it."""
    rope = {"type": "longrope", "short_factor": [1.5], "long_factor": [3.0],
            "original_max_position_embeddings": 8}
    folder = write(work / "longrope", CONFIG | {"rope_scaling": rope})
    n, reason, body = generated(folder, "--max-new-tokens", 0, "--ignore-eos")
    check("longrope: up to its original context", (n, reason) == (8, "length"), (n, reason))
    check("longrope: the receipt", body["sampling"]["context_length"] == 8, body)
    code, _, err = run(folder, "--prompt-ids", ",".join(["1"] * 8), "--max-new-tokens", 1)
    check("longrope: a longer prompt", code == 1 and "context is 8" in err, err)
    # An exported file away from its folder states the context length itself.
    first, _, _ = generated(folder, "--max-new-tokens", 1, "--ignore-eos")
    check("a token", first == 4)
    free = json.loads(run(folder, "--prompt-ids", "1,2,3", "--max-new-tokens", 0, "--ignore-eos",
                          "--json")[1])["tokens"]
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [free[1], free[1]], "bos_token_id": 1}))
    n, reason, beside = generated(folder, "--max-new-tokens", 0)
    check("eos of the folder", reason == "eos" and n <= 5, (n, reason))
    alone = work / "alone" / "m.onnx"
    alone.parent.mkdir()
    code, _, err = run("export", folder, "--colocate-tensors", "-o", alone)
    check("exported", code == 0, err)
    m, reason, body = generated(alone, "--max-new-tokens", 0)
    check("eos of the model", (m, reason) == (n, "eos"), (m, reason))
    for key in ("model", "sampling", "output"):
        check(f"the same {key} in both receipts", body.get(key) == beside.get(key),
              (body.get(key), beside.get(key)))
    n, reason, _ = generated(alone, "--max-new-tokens", 0, "--ignore-eos")
    check("context of the model", (n, reason) == (8, "length"), (n, reason))
    packed = alone.read_bytes()
    for key, value in ((b"ree.eos_token_ids", b"%d,%d" % (free[1], free[1])), (b"ree.context_length", b"8")):
        at = packed.index(key) + len(key) + 2  # after the value's tag and length
        check(f"{key} where it is expected", packed[at:at + len(value)] == value, packed[at:at + 9])
        (alone.parent / "bad.onnx").write_bytes(packed[:at] + b"x" * len(value) + packed[at + len(value):])
        code, _, err = run(alone.parent / "bad.onnx", "--prompt-ids", "1", "--max-new-tokens", 1)
        check(f"{key} that is none", code == 1 and key.decode() in err and "expected" in err, err)
    # gemma3 omits default values from text_config, here 131072 positions.
    text = {k: v for k, v in CONFIG.items() if k not in ("max_position_embeddings", "model_type")}
    gemma = {"model_type": "gemma3", "text_config": text | {"head_dim": 2}}
    folder = write(work / "gemma", gemma, safetensors(weights([*SHAPES, *GEMMA])))
    n, reason, body = generated(folder, "--max-new-tokens", 2, "--ignore-eos")
    check("gemma3: two tokens", (n, reason) == (5, "length"), (n, reason))
    check("gemma3: the receipt has its context", body["sampling"]["context_length"] == 131072, body)


def test_exported_beside(work):
    """A folder stays the same model when a quantised model is exported into it."""
    folder = write(work / "beside")

    def made(model):
        code, out, err = run(model, "--prompt-ids", "1,2", "--max-new-tokens", 1, "--logits-hash", "--json", "--stats")
        check(f"{model} generates", code == 0, err)
        result = json.loads(out) if code == 0 else {"stats": {}}
        return result.get("logits_sha256"), result["stats"].get("model")

    before = made(folder)
    check("the folder is the model", before[1] == str(folder), before)
    check("quantised", run("export", folder, "--quantize", 4)[0] == 0)
    check("the folder is still that model", made(folder) == before, (made(folder), before))
    other = made(folder / "model.onnx")
    check("the export is another", other[0] != before[0] and other[1] == f"{folder}/model.onnx", other)
    # A folder whose weights are missing or cannot be converted stands for its ONNX file.
    for what, change in (("type", {"model_type": "mamba"}), ("weights", {"quantization_config": {}})):
        (folder / "config.json").write_text(json.dumps(CONFIG | change))
        check(f"other {what}: the ONNX file", made(folder) == (other[0], f"{folder}/model.onnx"), made(folder))
    code, _, err = run("export", write(work / "whole"), "--colocate-tensors", "-o", folder / "model.onnx")
    check("whole", code == 0, err)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").unlink()
    check("no weights: the ONNX file", made(folder) == (before[0], f"{folder}/model.onnx"), made(folder))


def notes(err):
    return [line for line in err.splitlines() if line.startswith("ree-run: note: ")]


def test_unread(work):
    """Contents of a folder that the decoder does not read: adapters, layers beyond config.json's,
    biases, the model's own code."""
    def with_tensor(name):
        tensors = weights()
        tensors[name] = struct.pack("<4f", 1, 2, 3, 4)
        ALL_SHAPES[name] = [4]
        return safetensors(tensors)

    errors = {
        "model.layers.99.input_layernorm.weight": ("belongs to layer 99", "below 1"),
        "model.layers.1.mlp.down_proj.weight": ("belongs to layer 1",),
        "model.layers.0.self_attn.q_proj.bias": ("belongs to a layer", "model type 'llama'"),
        "model.layers.0.self_attn.q_proj.lora_A.weight": ("belongs to an adapter",),
        "base_model.adapter.weight": ("belongs to an adapter",),
        "model.norm.bias": ("is a bias",),
        "lm_head.bias": ("is a bias",),
    }
    for i, (name, expected) in enumerate(errors.items()):
        folder = write(work / f"error{i}", data=with_tensor(name))
        refuses(name, folder, f"'{name}'", *expected)
        code, out, err = run(folder, *RUN)
        check(f"{name}: nothing is run", code == 1 and out == "" and f"'{name}'" in err, err)

    folder = write(work / "adapter")
    (folder / "adapter_config.json").write_text("{}")
    refuses("adapter_config.json", folder, "adapter_config.json", "that ree does not apply")
    code, out, err = run(folder, *RUN)
    check("an adapter: nothing is run", code == 1 and out == "" and "adapter" in err, err)

    plain = write(work / "plain")
    code, expected, err = run(plain, *RUN)
    check("nothing to note", code == 0 and not notes(err), err)
    for name in ("vision_tower.x.weight", "model.layers.0.self_attn.rotary_emb.inv_freq", "lm_head.weight"):
        folder = write(work / name, data=with_tensor(name))
        for command in ([folder, *RUN], ["export", folder]):
            code, out, err = run(*command)
            wanted = 1 if name.startswith("vision") else 0
            check(f"{name}: {wanted} notes", code == 0 and len(notes(err)) == wanted, err)
            check(f"{name} is named", all(name in note and "not used" in note for note in notes(err)), err)
        code, out, err = run("inspect", folder)
        check(f"{name}: inspect", code == 0 and (f"'{name}'" in out) == bool(wanted), out)
    for file in ("config.json", "tokenizer_config.json"):
        folder = write(work / f"code-{file}")
        path = folder / file
        content = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(content | {"auto_map": {"AutoModel": "modeling_x.X"}}))
        code, out, err = run(folder, *RUN)
        check(f"auto_map of {file}: a note, and the same result", code == 0 and out == expected and
              len(notes(err)) == 1 and "auto_map" in notes(err)[0], err)


def test_full_disk(work):
    """An export that cannot be written completely leaves the previous export and no other file."""
    def of(what, size, *options):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        before = {path: path.read_bytes() for path in folder.iterdir()}
        code, _, err = run("export", folder, *options, preexec_fn=limit)
        check(f"full disk at {what}", code == 1 and "cannot write it: File too large" in err, err)
        check(f"full disk at {what}: as before",
              {path: path.read_bytes() for path in folder.iterdir()} == before, list(folder.iterdir()))

    folder = write(work / "full_disk")
    check("an export with its weights", run("export", folder, "--colocate-tensors")[0] == 0)
    sizes = [(folder / name).stat().st_size for name in ("model.onnx", "model.onnx.data")]
    check("the model is the smaller file", 4096 < sizes[0] < sizes[1] - 4096, sizes)
    of("the weights", sizes[0] + 4096, "--colocate-tensors")
    of("the model alone", 4096)
    (folder / "taken.onnx").mkdir()
    code, _, err = run("export", folder, "-o", folder / "taken.onnx")
    check("a folder in its place", code == 1 and "taken.onnx: cannot write it: not a regular file" in err, err)
    check("a folder in its place: as before", len(list(folder.iterdir())) == 5, list(folder.iterdir()))


def test_windows(work):
    """Mistral's window: 4096 if the key is absent, none if it is null."""
    mistral = CONFIG | {"model_type": "mistral"}
    for what, config, window in (("absent", mistral, b"4096"), ("null", mistral | {"sliding_window": None}, b"0"),
                                 ("given", mistral | {"sliding_window": 9}, b"9")):
        folder = write(work / f"window_{what}", config)
        check(f"window: {what}: export", run("export", folder)[0] == 0)
        packed, key = (folder / "model.onnx").read_bytes(), b"ree.sliding_windows"
        at = packed.index(key) + len(key) + 1
        check(f"window: {what}", packed[at + 1:at + 1 + packed[at]] == window, packed[at:at + 9])


def test_alignment(work, expected):
    """A header may have any length, so tensors may be at unaligned offsets."""
    for pad in range(4):
        folder = write(work / f"pad{pad}", data=safetensors(weights(), pad=pad))
        check(f"{pad} more bytes of header", digest(folder) == expected)


def test_hub_cache(work, expected):
    source = write(work / "source")
    for what, blobs, snapshots, targets in (
            ("cache", "blobs", "snapshots", "../../blobs/{}"),
            ("other name", "blobs", "revisions", "../../blobs/{}"),
            ("other folder", "files", "snapshots", "../../files/{}"),
            ("further out", "blobs", "snapshots", "../../../{0}/blobs/{1}")):
        root = work / what.replace(" ", "_")
        folder = root / snapshots / "rev"
        folder.mkdir(parents=True)
        (root / blobs).mkdir()
        for i, name in enumerate(("config.json", "model.safetensors")):
            (root / blobs / f"ab{i}").write_bytes((source / name).read_bytes())
            target = targets.format(root.name, f"ab{i}") if "{1}" in targets else \
                targets.format(f"ab{i}")
            os.symlink(target, folder / name)
            check(f"{what}: the link is right", (folder / name).exists())
        if what == "cache":
            check("cache", digest(folder) == expected)
            check("cache, exported", run("export", folder)[0] == 0)
            check("cache, exported: the same", digest(folder / "model.onnx") == expected)
            os.rename(root / "blobs" / "ab1", root / "blobs" / "ab2")
            os.symlink("ab2", root / "blobs" / "ab1")
            code, _, err = run(folder, *RUN)
            check("a blob that is a link", code == 1 and "symbolic link" in err, err)
        else:
            refuses(what, folder, "symbolic link")


def main():
    global ree_run
    parser = argparse.ArgumentParser()
    parser.add_argument("--ree-run", required=True)
    ree_run = parser.parse_args().ree_run
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        folder = write(work / "good")
        expected = digest(folder)
        test_headers(work)
        test_tensors(work)
        test_configs(work)
        test_shards(work, expected)
        test_places(work, folder, expected)
        test_contexts(work)
        test_exported_beside(work)
        test_unread(work / "unread")
        test_full_disk(work)
        test_windows(work)
        test_alignment(work, expected)
        test_hub_cache(work, expected)
    print(f"{n_passed} passed, {n_failed} failed")
    return 1 if n_failed or not n_passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
