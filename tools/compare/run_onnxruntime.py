"""run_onnxruntime.py FILE.onnx THREADS PROMPT STEPS: measures ONNX Runtime."""
import sys

import numpy as np
import onnxruntime as ort

from protocol import measure

options = ort.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
past = [i for i in session.get_inputs() if i.name.startswith("past")]
outputs = [o.name for o in session.get_outputs()]
empty = [ort.OrtValue.ortvalue_from_numpy(np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32))
         for i in past]
values = empty


def run(ids, position):
    global values
    feed = {"input_ids": np.array([ids], np.int64),
            "position_ids": np.arange(position, position + len(ids), dtype=np.int64)[None]}
    feed = {name: ort.OrtValue.ortvalue_from_numpy(x) for name, x in feed.items()}
    feed.update((i.name, x) for i, x in zip(past, values if position else empty))
    out = session.run_with_ort_values(outputs, feed)  # caches are not copied between runs
    values = out[1:]
    return int(out[0].numpy()[0, -1].argmax())


measure(ort.__version__, run)
