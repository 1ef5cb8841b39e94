"""Random nodes of the attention operators; see draws.py."""

import numpy as np

from draws import Draw, round_to


def trim(inputs):
    """Removes the omitted optional inputs at the end."""
    while inputs and inputs[-1] is None:
        inputs.pop()
    return inputs


def mask_of(r, batch, length, total):
    """Returns a mask in one of the possible forms; most queries have at least one key left."""
    form = r.pick(["none", "keys", "pairs", "end", "end_start"])
    if form == "none":
        return None
    if form == "keys":
        return r.ints(0, 3, batch, total).clip(0, 1)
    if form == "pairs":
        return r.ints(0, 3, batch, length, total).clip(0, 1)
    end = r.ints(min(1, total), max(total, 1), batch)
    if form == "end":
        return end
    return np.concatenate([end, np.minimum(r.ints(0, 2, batch), end)]).astype(np.int32)


def attention(r):
    batch, length, heads = r.size(3), r.size(6), r.int(1, 3)
    head_dim, hidden = r.int(1, 8), r.size(9)
    v_dim = r.pick([head_dim, head_dim, r.int(1, 8)])
    past_len = r.size(5) if r.chance(0.4) and v_dim == head_dim else None
    total = length + (past_len or 0)
    columns = heads * (2 * head_dim + v_dim)
    attrs = {"num_heads": heads}
    if v_dim != head_dim or r.chance(0.3):
        attrs["qkv_hidden_sizes"] = [heads * head_dim, heads * head_dim, heads * v_dim]
    if r.chance(0.5):
        attrs["unidirectional"] = r.int(0, 1)
    if r.chance(0.3):
        attrs["scale"] = r.float(0.1, 2)
    if r.chance(0.4):
        attrs["mask_filter_value"] = r.pick([-10000.0, -1e6, float(np.finfo(np.float32).min)])
    past = r.real(2, batch, heads, past_len, head_dim) if past_len is not None else None
    bias = None
    if past is None:
        bias = r.maybe(lambda: r.real(r.pick([1, batch]), r.pick([1, heads]), length, total), 0.3)
    inputs = [r.real(batch, length, hidden), r.real(hidden, columns),
              r.maybe(lambda: r.real(columns), 0.7), mask_of(r, batch, length, total), past, bias]
    with_present = past is not None or (v_dim == head_dim and r.chance(0.3))
    draw = Draw("Attention", trim(inputs), attrs=attrs,
                outputs=[True, True] if with_present else [True])
    if len(inputs) == 2 or inputs[2] is None:
        # ONNX Runtime reads the bias even if it is omitted.
        substitute = list(inputs) + [None] * (3 - len(inputs))
        substitute[2] = np.zeros(columns, np.float32)
        draw.substitute = Draw("Attention", substitute, attrs=attrs, outputs=draw.outputs)
    return draw


def multi_head_case(r, length):
    batch, heads, head_dim = r.size(3), r.int(1, 3), r.int(1, 8)
    v_dim = r.pick([head_dim, head_dim, r.int(1, 8)])
    attrs = {"num_heads": heads}
    if r.chance(0.3):
        attrs["scale"] = r.float(0.1, 2)
    if r.chance(0.3):
        attrs["mask_filter_value"] = r.pick([-10000.0, -1e6])
    return batch, heads, head_dim, v_dim, attrs


def multi_head_attention(r):
    length = r.size(6)
    batch, heads, head_dim, v_dim, attrs = multi_head_case(r, length)
    form = r.pick(["apart", "apart", "apart", "past", "past", "cached", "packed", "packed_kv"])
    hidden, v_hidden = heads * head_dim, heads * v_dim
    kv_len = r.pick([length, r.size(6)])
    if form in ("packed", "packed_kv", "past"):
        v_dim, v_hidden = head_dim, hidden
    if form == "packed":
        kv_len = length
    past_len = r.size(5) if form == "past" else 0
    total = past_len + kv_len
    if r.chance(0.5) and kv_len == length:
        attrs["unidirectional"] = r.int(0, 1)
    query = r.real(batch, length, hidden)
    key, value, past = r.real(batch, kv_len, hidden), r.real(batch, kv_len, v_hidden), [None] * 2
    if form == "past":
        past = [r.real(batch, heads, past_len, head_dim) for _ in range(2)]
    if form == "cached":
        key, value = r.real(batch, heads, kv_len, head_dim), r.real(batch, heads, kv_len, v_dim)
    bias = r.maybe(lambda: r.real(2 * hidden + v_hidden)) if form not in ("cached", "packed_kv") \
        else None
    mask = mask_of(r, batch, length, total)
    if mask is not None and mask.ndim == 1 and len(mask) != batch:
        mask = None
    attention_bias = r.maybe(lambda: r.real(r.pick([1, batch]), r.pick([1, heads]), length, total),
                             0.3)
    inputs = [query, key, value, bias, mask, attention_bias, *past]
    outputs = [True, True, True] if form == "past" or r.chance(0.3) else [True]
    if len(outputs) == 3 and r.chance(0.3):
        outputs.append(True)

    def keep(output, array):
        """The lowest float32, used for keys after the query, is -inf in float16."""
        return np.where(array < -1e30, 0, array) if output == 3 else array
    draw = Draw("MultiHeadAttention", trim(list(inputs)), attrs=attrs, outputs=outputs, keep=keep)
    if form in ("packed", "packed_kv"):
        # ONNX Runtime has these only on GPUs; the node with separate inputs is the reference.
        draw.substitute = Draw("MultiHeadAttention", list(draw.inputs), attrs=attrs, outputs=outputs)
        parts = [key, value] if form == "packed_kv" else [query, key, value]
        packed = np.stack([p.reshape(*p.shape[:2], heads, head_dim) for p in parts], axis=3)
        draw.inputs[0:3] = [query, packed, None] if form == "packed_kv" else [packed, None, None]
        trim(draw.inputs)
    return draw


def decoder_masked_multi_head_attention(r):
    batch, heads, head_dim, v_dim, attrs = multi_head_case(r, 1)
    hidden = heads * head_dim
    form = r.pick(["past", "shared", "shared", "cached"])
    total = r.int(1, 6) + 1
    query = r.real(batch, 1, hidden)
    if form == "cached":
        mask = r.maybe(lambda: r.ints(0, 3, batch, total).clip(0, 1))
        kv = [r.real(batch, heads, total, head_dim) for _ in range(2)]
        return Draw("DecoderMaskedMultiHeadAttention", trim([query, *kv, mask]), attrs=attrs)
    kv = [r.real(batch, 1, hidden) for _ in range(2)]
    past = [r.real(batch, heads, total - 1, head_dim) for _ in range(2)]
    bias = r.maybe(lambda: r.real(3 * hidden))
    mask = r.maybe(lambda: r.ints(0, 3, batch, total).clip(0, 1))
    attention_bias = r.maybe(lambda: r.real(1, heads, 1, total), 0.3)
    # ONNX Runtime's CPU kernel writes only into the buffer of the past, so the same node as
    # MultiHeadAttention is the reference.
    outputs = [True, True, True]
    inputs = trim([query, *kv, bias, mask, attention_bias, *past])
    substitute = Draw("MultiHeadAttention", inputs, attrs=attrs, outputs=outputs)
    buffers, filled = past, None
    if form == "shared":
        spare = r.int(1, 4)
        buffers = [np.concatenate([p, r.real(batch, heads, spare, head_dim)], axis=2) for p in past]
        filled = np.array([total - 1], np.int32)
        attrs = attrs | {"past_present_share_buffer": 1}
    if r.chance(0.4):
        query, kv = np.concatenate([query, *kv], axis=2), [None, None]
    inputs = [query, *kv, mask, attention_bias, *buffers, filled, None, None, bias]
    return Draw("DecoderMaskedMultiHeadAttention", trim(inputs), attrs=attrs, outputs=outputs,
                substitute=substitute,
                keep=lambda output, array: array[:, :, :total] if output else array)


def group_query_attention(r):
    kv_heads = r.int(1, 2)
    heads = kv_heads * r.int(1, 3)
    head_dim = r.pick([8, 16, 16])
    prompt = r.chance(0.45)
    batch = r.size(3, empty=0)
    past_len = 0 if prompt else r.int(1, 6)
    length = r.int(1, 6) if prompt or (batch == 1 and r.chance(0.4)) else 1
    total = past_len + length
    seqlens = np.full(batch, total - 1, np.int32)
    ragged = batch > 1 and r.chance(0.5)
    if ragged:  # some sequences have fewer tokens; at least one has all of them
        seqlens = r.ints(length if not prompt else 0, total - 1, batch)
        seqlens[r.int(0, batch - 1)] = total - 1
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads}
    packed = r.chance(0.3)
    width = head_dim * (heads + 2 * kv_heads if packed else heads)
    kv = [None, None] if packed else [r.real(batch, length, kv_heads * head_dim) for _ in range(2)]
    past = [r.real(batch, kv_heads, past_len, head_dim) for _ in range(2)]
    tables = [None, None]
    if head_dim == 16 and r.chance(0.5):
        columns = 8
        angles = np.outer(np.arange(total + 3), 10.0 ** -np.arange(columns))
        tables = [round_to(t, r.dtype) for t in (np.cos(angles), np.sin(angles))]
        attrs["do_rotary"] = 1
        if r.chance(0.4):
            attrs["rotary_interleaved"] = r.int(0, 1)
    if r.chance(0.3):
        attrs["scale"] = r.float(0.1, 1)
    if r.chance(0.25):
        attrs["softcap"] = r.float(0.5, 5)
    if r.chance(0.3):
        attrs["local_window_size"] = r.int(1, 6)
    sink = None
    if r.chance(0.2):
        attrs["smooth_softmax"] = 1
    elif r.chance(0.2):
        sink = r.real(heads)
    bias = r.maybe(lambda: r.real(r.pick([1, batch]), r.pick([1, heads]), length, total), 0.2)
    inputs = [r.real(batch, length, width), *kv, *past, seqlens, np.array(total, np.int32), *tables,
              None, bias, sink]

    def keep(output, array):
        """In a padded prompt, outputs at padding positions are undefined; so are scores of keys
        that do not take part."""
        if output == 3:
            i, j = np.indices(array.shape[2:])
            behind = total - length + i - j
            window = attrs.get("local_window_size", total)
            return np.where((behind >= 0) & (behind < window), array, 0)
        if not (ragged and prompt):
            return array
        rows = [array[b, :n + 1] if output == 0 else array[b, :, :n + 1]
                for b, n in enumerate(seqlens)]
        return np.concatenate([row.ravel() for row in rows])
    outputs = [True, True, True]
    if not ragged and r.chance(0.15):
        attrs["qk_output"] = r.int(1, 2)
        outputs.append(True)
    return Draw("GroupQueryAttention", trim(inputs), attrs=attrs, outputs=outputs, keep=keep)


def rotary_embedding(r):
    batch, length, heads = r.size(3), r.size(5), r.int(1, 3)
    half = r.int(1, 5)
    rows = length + r.int(1, 5)
    attrs = {}
    head_dim = 2 * half
    if r.chance(0.4):  # only a part of each head
        head_dim += r.int(0, 5)
        attrs = {"rotary_embedding_dim": 2 * half, "num_heads": heads}
    if r.chance(0.5):
        attrs["interleaved"] = r.int(0, 1)
    dims = [batch, length, heads * head_dim] if r.chance(0.6) else [batch, heads, length, head_dim]
    if r.chance(0.5):
        ids = np.array([r.int(0, rows - length)], np.int64)
    else:
        ids = r.ints(0, rows - 1, batch, length, dtype=np.int64)
    return Draw("RotaryEmbedding", [r.real(*dims), ids, r.real(rows, half), r.real(rows, half)],
                attrs=attrs)


OPERATORS = [attention, multi_head_attention, decoder_masked_multi_head_attention,
             group_query_attention, rotary_embedding]
