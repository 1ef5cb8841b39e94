"""run_pytorch.py FOLDER THREADS PROMPT STEPS: measures transformers with PyTorch, in the
checkpoint's type."""
import sys

import torch
import transformers

from protocol import measure

folder, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
past = None


def run(ids, position):
    global past
    out = model(torch.tensor([ids]), past_key_values=past if position else None, use_cache=True,
                logits_to_keep=1)
    past = out.past_key_values
    return int(out.logits[0, -1].argmax())


with torch.inference_mode():
    measure(f"{torch.__version__}, transformers {transformers.__version__}", run)
