"""Texts to tokenize, generated from a seed: many scripts, emoji, combining marks, code, numbers,
runs of white space. Only characters up to Unicode 11, on which all implementations agree."""

import random

RANGES = [
    (0x21, 0x7E), (0xA1, 0xAC), (0xAE, 0x17F), (0x1CD, 0x1DC), (0x250, 0x2AF), (0x391, 0x3A1),
    (0x3B1, 0x3C9), (0x400, 0x45F), (0x531, 0x556), (0x5D0, 0x5EA), (0x621, 0x64A), (0x660, 0x669),
    (0x904, 0x939), (0x93E, 0x94C), (0x995, 0x9A8), (0xB85, 0xB8A), (0xE01, 0xE30), (0x1780, 0x17B3),
    (0x10A0, 0x10C5), (0x10D0, 0x10F0), (0x1100, 0x1112), (0x13A0, 0x13F5), (0x1E00, 0x1EF9),
    (0x1F00, 0x1F15), (0x2010, 0x2027), (0x2030, 0x205E), (0x20A0, 0x20BF), (0x2100, 0x214F),
    (0x2150, 0x218B), (0x2190, 0x21FF), (0x2460, 0x24FF), (0x2500, 0x257F), (0x3001, 0x3020),
    (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFA2D),
    (0xFB00, 0xFB06), (0xFE30, 0xFE44), (0xFF01, 0xFF5E), (0x10330, 0x1034A), (0x1D400, 0x1D454),
    (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F900, 0x1F93E), (0x20000, 0x20100),
]
MARKS = [chr(c) for c in (0x300, 0x301, 0x308, 0x323, 0x327, 0x30A, 0x5B0, 0x64B, 0x93C, 0x20DD)]
EMOJI = ["\U0001F469\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "\U0001F44D\U0001F3FD",
         "\U0001F1E9\U0001F1EA", "\u2764\uFE0F", "\U0001F3F3\uFE0F\u200D\U0001F308", "\U0001F680"]
SPACES = [" ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "        ", "\u00A0",
          "\u2003", "\u3000", "\u2028", "\u200B", "\x0b", "\x85", "\u1680", "\ufeff"]
WORDS = """the of and to in is that it was for on are as with his they at be this have from or had by
hot word but what some we can out other were all there when up use your how said an each she which do
their time if will way about many then them write would like so these her long make thing see him two
don't I'm we've they'll it's she'd you're HELLO World McDonald's naïve café Straße übermäßig garçon
Ελλάδα Σίσυφος Москва привет мир שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดีชาวโลก 你好世界 機械学習
こんにちは世界 カタカナ 안녕하세요 세계 Việt Nam İstanbul ıŞĞ ﬁne ﬂow ½ ² ① Ⅷ ㎏ ﷺ Å K Ω""".split()
CODE = ["for (int i = 0; i < n; i++) {\n\tsum += a[i] * b[i];\n}\n", "def f(x):\n    return x**2 + 1\n",
        "<div class=\"a\">&amp;</div>", "x -> y::z<T>();", "{\"key\": [1, 2.5e-3, null]}",
        "https://example.org/a/b?c=d&e=%20f#g", "SELECT * FROM t WHERE a != 'b''c';", "#!/bin/sh\n",
        "a_b_c __init__ camelCaseName CONSTANT_NAME 0xDEADBEEF 1_000_000 3.14159"]


def mixed(seed, size):
    """Returns about `size` bytes of UTF-8 text."""
    rng = random.Random(seed)
    parts, total = [], 0
    while total < size:
        kind = rng.random()
        if kind < 0.55:
            part = rng.choice(WORDS)
        elif kind < 0.75:
            low, high = rng.choice(RANGES)
            part = "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 12)))
        elif kind < 0.80:
            low, high = rng.choice(RANGES[:30])
            part = "".join(chr(rng.randint(low, high)) + rng.choice(MARKS)
                           for _ in range(rng.randint(1, 4)))
        elif kind < 0.85:
            part = rng.choice(EMOJI) * rng.randint(1, 3)
        elif kind < 0.91:
            part = str(rng.randint(0, 10 ** rng.randint(1, 15)))
        elif kind < 0.95:
            part = rng.choice(CODE)
        else:
            part = rng.choice("!?.,;:-=*#_~'\"(){}[]<>/\\|@$%^&+`") * rng.randint(1, 9)
        part += rng.choice(SPACES) if rng.random() < 0.85 else ""
        parts.append(part)
        total += len(part.encode("utf-8"))
    return "".join(parts)


def random_bytes(seed, size):
    rng = random.Random(seed)
    pieces = []
    while size > 0:
        n = min(size, rng.randint(1, 40))
        if rng.random() < 0.5:
            pieces.append(rng.randbytes(n))
        else:  # characters, the last of which may be truncated
            text = "".join(chr(rng.choice((rng.randint(1, 0x7F), rng.randint(0x80, 0x7FF),
                                           rng.randint(0x4E00, 0x9FA5), rng.randint(0x1F300, 0x1F5FF))))
                           for _ in range(n)).encode("utf-8")
            pieces.append(text[:rng.randint(1, len(text))])
        size -= n
    return b"".join(pieces)


EDGES = ["", " ", "  ", "\n", "a", "é", "e\u0301", "\u0301", "a" * 300, "ab" * 200, " a b ", "\t\n\r ",
         "don't", "DON'T", "'s't", "İI", "ǅ", "ﬁ", "Å", "한국", "각", "\u0000a\u0000", "\ufffd",
         "\U0010ffff", "##a", "▁a▁▁b", "<s>", "a<s> b</s>", "<0x41>", "Hello<|x|>  world <|y|> z",
         "[CLS] a [SEP]", "a  [MASK]  b", "amaskb mask, mask", "x" * 5000]
