"""run_llama.py FILE.gguf THREADS PROMPT STEPS: measures llama.cpp through llama-cpp-python's
low-level functions. Everything that is not set here is llama.cpp's default: key-value caches of
float16, flash attention where it supports it, weights in a layout of the processor."""
import ctypes
import sys

import llama_cpp
import numpy as np

from protocol import measure

path, threads, n_prompt, n_steps = sys.argv[1], *map(int, sys.argv[2:])


@llama_cpp.llama_log_callback
def silent(level, text, user):
    pass


def ggml_version():
    from llama_cpp._ggml import libggml
    libggml.ggml_version.restype = ctypes.c_char_p
    return libggml.ggml_version().decode()


llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
llama_cpp.llama_backend_init()
model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
params = llama_cpp.llama_context_default_params()
params.n_ctx = n_prompt + n_steps
params.n_batch = max(n_prompt, 512)
params.n_ubatch = 512
params.n_threads = params.n_threads_batch = threads
context = llama_cpp.llama_init_from_model(model, params)
vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))


def run(ids, position):
    if position == 0:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
    tokens = (llama_cpp.llama_token * len(ids))(*ids)
    # This batch continues the sequence and requests the logits of the last token.
    status = llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(ids)))
    if status:
        sys.exit(f"llama_decode: {status}")
    logits = llama_cpp.llama_get_logits_ith(context, -1)  # waits for the computation
    return int(np.ctypeslib.as_array(logits, (vocabulary,)).argmax())


features = llama_cpp.llama_print_system_info().decode().strip(" |")
measure(f"ggml {ggml_version()} of llama-cpp-python {llama_cpp.__version__}; {features}", run)
