"""Small models of torchvision, transformers and PyTorch with random weights: MODELS is a list of functions that
return (module, args, kwargs)."""
import torch
import torchvision
import transformers
from torch import nn


class UNet(nn.Module):
    """A small U-Net."""
    def __init__(self):
        super().__init__()
        def block(n, m):
            return nn.Sequential(nn.Conv2d(n, m, 3, padding=1), nn.GroupNorm(4, m), nn.SiLU(),
                                 nn.Conv2d(m, m, 3, padding=1), nn.BatchNorm2d(m), nn.ReLU())
        self.down = nn.ModuleList([block(3, 16), block(16, 32), block(32, 64)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, stride=2), nn.Upsample(scale_factor=2, mode="bilinear")])
        self.merge = nn.ModuleList([block(64, 32), block(48, 16)])
        self.last = nn.Conv2d(16, 5, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](nn.functional.max_pool2d(a, 2))
        c = self.down[2](nn.functional.avg_pool2d(b, 2))
        y = self.merge[0](torch.cat([self.up[0](c), b], 1))
        return self.last(self.merge[1](torch.cat([self.up[1](y), a], 1)))


class LSTM(nn.Module):
    """Two directions, two layers."""
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 24)
        self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 50)

    def forward(self, ids):
        y, (h, c) = self.lstm(self.embed(ids))
        return self.head(y), h, c


class Transformer(nn.Module):
    """PyTorch's own encoder layers."""
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)


def ids(n, size=100):
    return torch.randint(0, size, (2, n))


def text_model(kind, **config):
    """A model of transformers with eager attention and no cache."""
    made = getattr(transformers, f"{kind}Config")(**config)
    made._attn_implementation = "eager"  # pylint: disable=protected-access
    return made


SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 128}


def resnet():
    return torchvision.models.resnet18(num_classes=10), (torch.randn(2, 3, 64, 64),), {}


def mobilenet():
    return torchvision.models.mobilenet_v3_small(num_classes=10), (torch.randn(2, 3, 64, 64),), {}


def efficientnet():
    return torchvision.models.efficientnet_b0(num_classes=10), (torch.randn(1, 3, 64, 64),), {}


def convnext():
    blocks = [torchvision.models.convnext.CNBlockConfig(n, m, 1) for n, m in ((32, 64), (64, None))]
    return torchvision.models.ConvNeXt(blocks, num_classes=10), (torch.randn(2, 3, 64, 64),), {}


def vit():
    config = text_model("ViT", image_size=32, patch_size=8, **SMALL)
    return transformers.ViTForImageClassification(config), (torch.randn(2, 3, 32, 32),), {"return_dict": False}


def bert():
    config = text_model("Bert", vocab_size=100, max_position_embeddings=32, **SMALL)
    return transformers.BertForMaskedLM(config), (), {"input_ids": ids(12), "attention_mask": torch.ones(2, 12).long(),
                                                      "return_dict": False}


def gpt2():
    config = text_model("GPT2", vocab_size=100, n_positions=32, n_embd=64, n_layer=2, n_head=4, use_cache=False)
    return transformers.GPT2LMHeadModel(config), (), {"input_ids": ids(12), "return_dict": False}


def llama():
    config = text_model("Llama", vocab_size=100, num_key_value_heads=2, use_cache=False, **SMALL)
    return transformers.LlamaForCausalLM(config), (), {"input_ids": ids(12), "return_dict": False}


def t5():
    config = text_model("T5", vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
    return transformers.T5EncoderModel(config), (), {"input_ids": ids(12), "return_dict": False}


def unet():
    return UNet(), (torch.randn(1, 3, 32, 32),), {}


def lstm():
    return LSTM(), (ids(9, 50),), {}


def transformer():
    return Transformer(), (torch.randn(2, 10, 64),), {}


MODELS = (resnet, mobilenet, efficientnet, convnext, vit, bert, gpt2, llama, t5, unet, lstm, transformer)


def randomise(module):
    """Weights and statistics of norms that make every part count."""
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if value.is_floating_point() and value.dim() < 2:
            with torch.no_grad():
                value.copy_(torch.rand_like(value) + 0.5 if "weight" in name or "var" in name else
                            torch.randn_like(value) * 0.1)
