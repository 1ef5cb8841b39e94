#!/usr/bin/env python3
"""Makes the sample model: draws its own handwriting, learns to read it, writes digits.onnx.

    python3 make_digits.py            (needs numpy and onnx; a few minutes of one core)

Nothing is downloaded. Each digit has a few skeletons (strokes through control points); a training
image is a skeleton with jittered points, bent by a smooth displacement, sheared, turned, scaled,
inked with a pen of random width and given some noise. The network is

    conv 5x5, 8 -> relu -> max-pool 2 -> conv 3x3, 16 -> relu -> max-pool 2
    -> fully connected, 64 -> relu -> fully connected, 10 -> softmax

trained with Adam on cross-entropy. Images for the accuracy below and the sample inputs come from
another random stream than the training images. Seeds are fixed; the last digits of the weights
still depend on numpy's BLAS, so the result is committed, not built.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 28
N_TRAIN, N_TEST = 24000, 4000
N_EPOCHS, BATCH = 6, 64
SEGMENTS = 48  # per drawing, over all its strokes

# Control points (x to the right, y down, in a unit square); a smooth curve goes through them. A
# stroke marked "line" has corners instead.
CURVE, LINE = "curve", "line"
SKELETONS = {
    0: [
        [(CURVE, [(.50, .02), (.22, .12), (.12, .45), (.20, .85), (.50, .98), (.80, .85), (.88, .45),
                  (.76, .12), (.47, .02)])],
        [(CURVE, [(.62, .06), (.35, .05), (.15, .35), (.18, .75), (.45, .97), (.75, .80), (.85, .45),
                  (.72, .15), (.50, .03)])],
    ],
    1: [
        [(LINE, [(.52, .02), (.50, .98)])],
        [(LINE, [(.32, .22), (.55, .02), (.53, .98)])],
        [(LINE, [(.30, .24), (.52, .02), (.52, .98)]), (LINE, [(.28, .98), (.76, .98)])],
    ],
    2: [
        [(CURVE, [(.15, .28), (.28, .06), (.58, .02), (.80, .20), (.72, .46), (.45, .72), (.14, .97)]),
         (LINE, [(.14, .97), (.88, .95)])],
        [(CURVE, [(.18, .20), (.45, .02), (.76, .14), (.74, .42), (.40, .75), (.20, .92), (.22, .80),
                  (.42, .84), (.66, .97), (.88, .90)])],
    ],
    3: [
        [(CURVE, [(.16, .14), (.45, .01), (.76, .14), (.74, .36), (.44, .47)]),
         (CURVE, [(.44, .47), (.80, .58), (.82, .84), (.50, .99), (.14, .86)])],
        [(LINE, [(.16, .03), (.78, .03), (.44, .40)]),
         (CURVE, [(.44, .40), (.78, .50), (.84, .78), (.52, .98), (.14, .88)])],
    ],
    4: [
        [(LINE, [(.28, .04), (.14, .58), (.90, .56)]), (LINE, [(.68, .12), (.66, .98)])],
        [(LINE, [(.66, .98), (.66, .02), (.10, .66), (.92, .66)])],
        [(CURVE, [(.22, .06), (.16, .32), (.28, .52), (.60, .50), (.78, .40)]),
         (LINE, [(.80, .04), (.74, .98)])],
    ],
    5: [
        [(LINE, [(.80, .03), (.26, .03), (.20, .44)]),
         (CURVE, [(.20, .44), (.55, .36), (.84, .56), (.76, .88), (.44, .99), (.12, .88)])],
        [(LINE, [(.24, .04), (.22, .42)]), (LINE, [(.24, .04), (.82, .02)]),
         (CURVE, [(.22, .42), (.60, .38), (.82, .66), (.64, .94), (.36, .98), (.14, .86)])],
    ],
    6: [
        [(CURVE, [(.72, .04), (.38, .22), (.16, .60), (.26, .92), (.56, .98), (.80, .80), (.70, .56),
                  (.42, .54), (.20, .72)])],
        [(CURVE, [(.58, .01), (.28, .30), (.16, .70), (.36, .97), (.68, .92), (.76, .68), (.50, .52),
                  (.18, .68)])],
    ],
    7: [
        [(LINE, [(.12, .04), (.86, .04), (.40, .98)])],
        [(LINE, [(.14, .06), (.84, .03), (.44, .98)]), (LINE, [(.34, .50), (.78, .48)])],
        [(CURVE, [(.12, .16), (.16, .04), (.50, .08), (.84, .04)]),
         (CURVE, [(.84, .04), (.60, .40), (.48, .70), (.44, .98)])],
    ],
    8: [
        [(CURVE, [(.74, .12), (.48, .01), (.22, .14), (.28, .36), (.54, .50), (.80, .70), (.74, .92),
                  (.48, .99), (.20, .90), (.18, .70), (.46, .50), (.74, .34), (.74, .10)])],
        [(CURVE, [(.50, .02), (.24, .14), (.28, .38), (.50, .47), (.74, .36), (.74, .14), (.48, .02)]),
         (CURVE, [(.50, .47), (.18, .62), (.18, .88), (.50, .99), (.82, .88), (.80, .62),
                  (.48, .47)])],
    ],
    9: [
        [(CURVE, [(.80, .20), (.52, .02), (.22, .16), (.20, .40), (.46, .52), (.76, .38), (.80, .18)]),
         (LINE, [(.80, .18), (.74, .98)])],
        [(CURVE, [(.80, .20), (.56, .02), (.24, .12), (.18, .38), (.44, .50), (.76, .34), (.80, .16),
                  (.80, .60), (.62, .92), (.28, .97)])],
    ],
}


def spline(points, n):
    """Returns n + 1 points of the Catmull-Rom curve through `points`."""
    p = np.vstack([2 * points[0] - points[1], points, 2 * points[-1] - points[-2]])
    t = np.linspace(0, len(points) - 1, n + 1)
    i = np.minimum(t.astype(int), len(points) - 2)
    u = (t - i)[:, None]
    a, b, c, d = p[i], p[i + 1], p[i + 2], p[i + 3]
    return 0.5 * (2 * b + (c - a) * u + (2 * a - 5 * b + 4 * c - d) * u**2
                  + (3 * b - a - 3 * c + d) * u**3)


def polyline(points, n):
    """Returns n + 1 points along the straight lines between `points`, corners included."""
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    t = np.union1d(np.linspace(0, length[-1], n + 1 - len(points) + 2), length)[: n + 1]
    t = np.concatenate([t, np.full(n + 1 - len(t), length[-1])])
    return np.stack([np.interp(t, length, points[:, k]) for k in (0, 1)], axis=1)


def drawing(digit, rng):
    """Returns the segments (SEGMENTS, 2, 2) of one handwritten digit, in pixels."""
    strokes = SKELETONS[digit][rng.integers(len(SKELETONS[digit]))]
    share = SEGMENTS // len(strokes)
    segments = []
    bend = rng.normal(0, 0.025, (2, 2, 2))
    phase = rng.uniform(0, 2 * np.pi, (2, 2, 2))
    for kind, points in strokes:
        points = np.array(points) + rng.normal(0, 0.022, (len(points), 2))
        line = (spline if kind == CURVE else polyline)(points, share)
        # A smooth displacement: two waves in each direction.
        for axis in (0, 1):
            for wave in (0, 1):
                for along in (0, 1):
                    line[:, axis] += bend[axis, wave, along] * np.sin(
                        np.pi * (wave + 1) * line[:, along] + phase[axis, wave, along])
        segments.append(np.stack([line[:-1], line[1:]], axis=1))
    segments = np.concatenate(segments)
    segments = np.concatenate([segments, np.repeat(segments[-1:], SEGMENTS - len(segments), 0)])

    angle, shear = rng.normal(0, 0.11), rng.normal(0, 0.18)
    width, height = rng.uniform(10.5, 15.5), rng.uniform(17, 21)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, -shear], [0, 1]]) @ np.diag([width, height])
    middle = np.array([SIZE / 2, SIZE / 2]) + rng.uniform(-1.6, 1.6, 2)
    return (segments - 0.5) @ matrix.T + middle


def render(segments, rng):
    """Renders images (n, 28, 28) in [0, 1] from segments (n, SEGMENTS, 2, 2): ink by distance to
    the pen."""
    n = len(segments)
    y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    pixels = np.stack([x, y], axis=-1).reshape(1, -1, 1, 2).astype(np.float32)
    a = segments[:, None, :, 0].astype(np.float32)
    ab = segments[:, None, :, 1].astype(np.float32) - a
    ap = pixels - a
    t = np.clip((ap * ab).sum(-1) / np.maximum((ab * ab).sum(-1), 1e-6), 0, 1)
    distance = np.sqrt((((ap - t[..., None] * ab) ** 2).sum(-1)).min(-1))
    pen = rng.uniform(0.65, 1.7, (n, 1)).astype(np.float32)
    ink = np.clip(1 - (distance - pen) / rng.uniform(0.8, 1.4, (n, 1)), 0, 1)
    ink = ink * rng.uniform(0.8, 1.0, (n, 1)) + rng.normal(0, 0.03, ink.shape)
    return np.clip(ink, 0, 1).astype(np.float32).reshape(n, SIZE, SIZE)


def make_images(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, n)
    images = np.empty((n, 1, SIZE, SIZE), np.float32)
    for start in range(0, n, 64):
        some = labels[start:start + 64]
        images[start:start + 64, 0] = render(np.stack([drawing(d, rng) for d in some]), rng)
    return images, labels


# The network. Activations are (n, channels, height, width).


def patches(x, k):
    """Returns (n, h, w, c*k*k): the k x k neighbourhood of every pixel, zeros outside."""
    pad = k // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))
    return np.ascontiguousarray(view.transpose(0, 2, 3, 1, 4, 5)).reshape(
        view.shape[0], view.shape[2], view.shape[3], -1)


def conv(x, w, b):
    columns = patches(x, w.shape[2])
    return (columns @ w.reshape(len(w), -1).T + b).transpose(0, 3, 1, 2), columns


def conv_backward(g, columns, w, need_input):
    g = np.ascontiguousarray(g.transpose(0, 2, 3, 1))
    gw = (g.reshape(-1, len(w)).T @ columns.reshape(-1, columns.shape[-1])).reshape(w.shape)
    gb = g.sum((0, 1, 2))
    if not need_input:
        return None, gw, gb
    # The gradient of a convolution is a convolution with the mirrored, transposed kernel.
    mirrored = np.ascontiguousarray(w.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
    gx, _ = conv(g.transpose(0, 3, 1, 2), mirrored, 0)
    return gx, gw, gb


def pool(x):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    y = blocks.max((3, 5))
    return y, blocks == y[:, :, :, None, :, None]


def pool_backward(g, mask):
    n, c, h, _, w, _ = mask.shape
    share = mask / mask.sum((3, 5), keepdims=True)
    return (share * g[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w).astype(np.float32)


def forward(p, x):
    s = {}
    z1, s["c1"] = conv(x, p["conv1.weight"], p["conv1.bias"])
    s["a1"] = np.maximum(z1, 0)
    h1, s["m1"] = pool(s["a1"])
    z2, s["c2"] = conv(h1, p["conv2.weight"], p["conv2.bias"])
    s["a2"] = np.maximum(z2, 0)
    h2, s["m2"] = pool(s["a2"])
    s["flat"] = h2.reshape(len(x), -1)
    s["a3"] = np.maximum(s["flat"] @ p["fc1.weight"] + p["fc1.bias"], 0)
    return s["a3"] @ p["fc2.weight"] + p["fc2.bias"], s


def gradients(p, x, labels):
    scores, s = forward(p, x)
    e = np.exp(scores - scores.max(1, keepdims=True))
    probabilities = e / e.sum(1, keepdims=True)
    loss = -np.log(probabilities[np.arange(len(x)), labels] + 1e-12).mean()
    g = probabilities
    g[np.arange(len(x)), labels] -= 1
    g /= len(x)
    d = {"fc2.weight": s["a3"].T @ g, "fc2.bias": g.sum(0)}
    g = (g @ p["fc2.weight"].T) * (s["a3"] > 0)
    d["fc1.weight"], d["fc1.bias"] = s["flat"].T @ g, g.sum(0)
    g = (g @ p["fc1.weight"].T).reshape(len(x), 16, 7, 7)
    g = pool_backward(g, s["m2"]) * (s["a2"] > 0)
    g, d["conv2.weight"], d["conv2.bias"] = conv_backward(g, s["c2"], p["conv2.weight"], True)
    g = pool_backward(g, s["m1"]) * (s["a1"] > 0)
    _, d["conv1.weight"], d["conv1.bias"] = conv_backward(g, s["c1"], p["conv1.weight"], False)
    return loss, d


def accuracy(p, images, labels):
    hits = 0
    for start in range(0, len(images), 256):
        scores, _ = forward(p, images[start:start + 256])
        hits += (scores.argmax(1) == labels[start:start + 256]).sum()
    return hits / len(images)


def train(images, labels):
    rng = np.random.default_rng(1)

    def he(*shape, fan_in):
        return rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)

    p = {
        "conv1.weight": he(8, 1, 5, 5, fan_in=25), "conv1.bias": np.zeros(8, np.float32),
        "conv2.weight": he(16, 8, 3, 3, fan_in=72), "conv2.bias": np.zeros(16, np.float32),
        "fc1.weight": he(784, 64, fan_in=784), "fc1.bias": np.zeros(64, np.float32),
        "fc2.weight": he(64, 10, fan_in=64), "fc2.bias": np.zeros(10, np.float32),
    }
    m = {k: np.zeros_like(v) for k, v in p.items()}
    v = {k: np.zeros_like(v) for k, v in p.items()}
    step, n_steps = 0, N_EPOCHS * (len(images) // BATCH)
    for epoch in range(N_EPOCHS):
        order = rng.permutation(len(images))
        total = 0.0
        for start in range(0, len(images) - BATCH + 1, BATCH):
            at = order[start:start + BATCH]
            loss, d = gradients(p, images[at], labels[at])
            total += loss
            step += 1
            rate = 1e-3 * 0.5 * (1 + np.cos(np.pi * step / n_steps)) * np.sqrt(
                1 - 0.999**step) / (1 - 0.9**step)
            for k in p:
                m[k] += 0.1 * (d[k] - m[k])
                v[k] += 0.001 * (d[k] ** 2 - v[k])
                p[k] -= (rate * m[k] / (np.sqrt(v[k]) + 1e-8)).astype(np.float32)
        print(f"epoch {epoch + 1}: mean loss {total / (len(images) // BATCH):.4f}", flush=True)
    return p


def export(p, path, note):
    def conv_node(name, x, y, k):
        return helper.make_node("Conv", [x, f"{name}.weight", f"{name}.bias"], [y], name=name,
                                kernel_shape=[k, k], pads=[k // 2] * 4)

    def pool_node(name, x, y):
        return helper.make_node("MaxPool", [x], [y], name=name, kernel_shape=[2, 2], strides=[2, 2])

    def relu(name, x, y):
        return helper.make_node("Relu", [x], [y], name=name)

    nodes = [
        conv_node("conv1", "image", "conv1.out", 5), relu("relu1", "conv1.out", "relu1.out"),
        pool_node("pool1", "relu1.out", "pool1.out"),
        conv_node("conv2", "pool1.out", "conv2.out", 3), relu("relu2", "conv2.out", "relu2.out"),
        pool_node("pool2", "relu2.out", "pool2.out"),
        helper.make_node("Flatten", ["pool2.out"], ["flat"], name="flatten", axis=1),
        helper.make_node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["fc1.out"], name="fc1"),
        relu("relu3", "fc1.out", "relu3.out"),
        helper.make_node("Gemm", ["relu3.out", "fc2.weight", "fc2.bias"], ["scores"], name="fc2"),
        helper.make_node("Softmax", ["scores"], ["probabilities"], name="softmax", axis=-1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, SIZE, SIZE])
    image.doc_string = "grey values, 0 is paper and 1 is ink"
    output = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes, "digits", [image], [output],
                              [numpy_helper.from_array(v, k) for k, v in p.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                              producer_name="tools/sample/make_digits.py", ir_version=8)
    model.doc_string = note
    names = "zero,one,two,three,four,five,six,seven,eight,nine"
    helper.set_model_props(model, {"labels": names})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return names.split(",")


def main():
    images, labels = make_images(N_TRAIN, seed=20)
    test_images, test_labels = make_images(N_TEST, seed=21)
    print(f"{N_TRAIN} training and {N_TEST} test images drawn", flush=True)
    p = train(images, labels)
    score = accuracy(p, test_images, test_labels)
    print(f"accuracy on the test images: {100 * score:.2f} %")
    names = export(p, HERE / "digits.onnx",
                   "Reads one handwritten digit of 28 x 28 pixels. Trained on drawings generated by "
                   f"make_digits.py; {100 * score:.2f} % of {N_TEST} unseen drawings are read right.")
    # The sample inputs: among the first hundred unseen drawings, the clearest of each of these
    # digits.
    scores, _ = forward(p, test_images[:100])
    for digit in (2, 5, 7, 9):
        margin = scores[:, digit] - np.delete(scores, digit, axis=1).max(1)
        clearest = np.where(test_labels[:100] == digit, margin, -np.inf).argmax()
        np.save(HERE / f"{names[digit]}.npy", test_images[clearest][None])
        print(f"{names[digit]}.npy is read as {names[int(scores[clearest].argmax())]}")


if __name__ == "__main__":
    main()
