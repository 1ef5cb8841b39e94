#!/usr/bin/env python3
"""How much of torchvision's and transformers' models ree's rules for ATen operators cover: each model is captured
forward and backward, and its graphs are lowered to ONNX, but not run. Prints a line for each model, the operators
that were found in how many models, and those that are not supported.

    PYTHONPATH=build/python tests/python/aten_coverage.py [NAME...]

Needs torch 2.5 or later, torchvision and transformers, so it runs on demand; docs/PYTHON.md has its results.
"""
import collections
import operator
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402

try:
    import torch
    import torchvision
    import transformers
except ImportError as missing:
    harness.skip(f"{missing.name} is not installed")
from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402
import ree  # noqa: E402
from ree import compiler, lowering  # noqa: E402,F401

torch._dynamo.config.allow_rnn = True
VISION = ("alexnet", "vgg11_bn", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "squeezenet1_1", "densenet121",
          "googlenet", "inception_v3", "shufflenet_v2_x0_5", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5",
          "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf", "convnext_tiny", "vit_b_32", "swin_t", "swin_v2_t",
          "maxvit_t", "fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "r3d_18",
          "raft_small")
SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 128,
         "vocab_size": 100, "max_position_embeddings": 64}
# Name of the configuration, class, and what the configuration has beside SMALL.
TEXT = (("Bert", "ForMaskedLM", {}), ("Roberta", "ForMaskedLM", {"pad_token_id": 1}), ("Albert", "ForMaskedLM", {}),
        ("Electra", "ForMaskedLM", {"embedding_size": 64}), ("DistilBert", "ForMaskedLM", {"dim": 64, "n_heads": 4,
                                                                                             "n_layers": 2}),
        ("MPNet", "ForMaskedLM", {"pad_token_id": 1}), ("DebertaV2", "ForMaskedLM", {}), ("GPT2", "LMHeadModel", {
            "n_embd": 64, "n_layer": 2, "n_head": 4}), ("GPTNeoX", "ForCausalLM", {}), ("OPT", "ForCausalLM", {
                "ffn_dim": 128, "word_embed_proj_dim": 64}), ("Bloom", "ForCausalLM", {"n_layer": 2, "n_head": 4}),
        ("Llama", "ForCausalLM", {"num_key_value_heads": 2}), ("Mistral", "ForCausalLM", {"num_key_value_heads": 2}),
        ("Qwen2", "ForCausalLM", {"num_key_value_heads": 2}), ("Qwen3", "ForCausalLM", {"num_key_value_heads": 2,
                                                                                         "head_dim": 16}),
        ("Gemma2", "ForCausalLM", {"num_key_value_heads": 2, "head_dim": 16}), ("Phi3", "ForCausalLM", {
            "num_key_value_heads": 2, "pad_token_id": 0}), ("Falcon", "ForCausalLM",
                                                            {}), ("StableLm", "ForCausalLM", {
                "num_key_value_heads": 4}), ("T5", "EncoderModel", {"d_model": 64, "d_kv": 16, "d_ff": 128,
                                                                   "num_layers": 2, "num_heads": 4}))


def vision(name):
    kind = torchvision.models.segmentation if "resnet50" == name[-8:] and name.startswith("fcn") or "v3_large" in name \
        else torchvision.models.video if name == "r3d_18" else torchvision.models.optical_flow if "raft" in name \
        else torchvision.models
    how = {"weights": None}
    if "v3_large" in name or name.startswith("fcn"):
        how["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        how.update(init_weights=False, aux_logits=False)
    model = getattr(kind, name)(**how)
    size = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 224, "raft_small": 128}.get(name, 64)
    shape = (1, 3, 4, 32, 32) if name == "r3d_18" else (2, 3, size, size)
    args = (torch.randn(shape),) * (2 if "raft" in name else 1)
    return model, args, {}


def text(name, suffix, more):
    accepted = {**SMALL, **more}
    config = getattr(transformers, f"{name}Config")(**accepted)
    config.use_cache = False
    return getattr(transformers, f"{name}{suffix}")(config), (), {"input_ids": torch.randint(2, 90, (2, 12)),
                                                                  "return_dict": False}


class Counter:
    """A backend that lowers graphs, and lets PyTorch run them."""

    def __init__(self):
        self.n_graphs, self.n_whole, self.n_nodes = 0, 0, 0
        self.found, self.missing, self.refused = set(), set(), set()

    def graph(self, graph_module, inputs):  # pylint: disable=unused-argument
        self.n_graphs += 1
        calls = [node for node in graph_module.graph.nodes if node.op == "call_function" and
                 node.target is not operator.getitem]
        self.n_nodes += len(calls)
        self.found |= {lowering.name_of(node.target) for node in calls}
        missing = lowering.unsupported(graph_module.graph)
        self.missing |= set(missing)
        if not missing:
            try:
                ree.Model(lowering.Lowering(graph_module.graph).model)
                self.n_whole += 1
            except ree.Error as e:
                self.refused.add(str(e))
        return make_boxed_func(graph_module.forward)

    def __call__(self, graph_module, inputs):
        compile_all = aot_autograd(fw_compiler=self.graph, bw_compiler=self.graph, inference_compiler=self.graph,
                                   decompositions=lowering.decompositions())
        return compile_all(graph_module, inputs)


def count(name, make, in_models, missing_in):
    torch._dynamo.reset()
    torch.manual_seed(1)
    counter, note = Counter(), ""
    try:
        module, args, kwargs = make()
        module.train()
        made = torch.compile(module, backend=counter)(*args, **kwargs)
        tensors = [t for t in pytree.tree_flatten(made)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        sum(t.float().mean() for t in tensors).backward()
    except Exception as e:  # pylint: disable=broad-except # one model must not end the count
        note = f"  {type(e).__name__}: {str(e).strip().splitlines()[0][:100]}"
    for op in counter.found:
        in_models[op] += 1
    for op in counter.missing:
        missing_in[op].append(name)
    lacks = f"  lacks {', '.join(sorted(counter.missing))}" if counter.missing else ""
    refused = "".join(f"  {reason[:160]}" for reason in sorted(counter.refused))
    print(f"{name:32} {counter.n_whole:3} of {counter.n_graphs:3} graphs  {counter.n_nodes:5} nodes"
          f"{lacks}{refused}{note}", flush=True)
    return counter


wanted = sys.argv[1:]
models = [(name, lambda name=name: vision(name)) for name in VISION] + \
    [(kind, lambda kind=kind, suffix=suffix, more=more: text(kind, suffix, more)) for kind, suffix, more in TEXT]
ops, lacking, whole, graphs = collections.Counter(), collections.defaultdict(list), 0, 0
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, transformers {transformers.__version__}")
for label, maker in models:
    if not wanted or label in wanted:
        counted = count(label, maker, ops, lacking)
        whole, graphs = whole + counted.n_whole, graphs + counted.n_graphs
print(f"{whole} of {graphs} graphs run whole; {len(ops) - len(lacking)} of {len(ops)} operators are supported")
for op, names in sorted(lacking.items()):
    print(f"not supported: {op} ({', '.join(names)})")
print(", ".join(f"{op} {n}" for op, n in ops.most_common()))
