"""Prints the medians of all measurements as one table in Markdown."""
import statistics

from sides import SIDES, TYPES


def _rate(records, field, n):
    return n / statistics.median(r[field] for r in records)


def _row(cells):
    print("| " + " | ".join(cells) + " |")


def show(args, found, measurements, limits, environment):
    """`measurements`: objects of protocol.py with `contestant` and `side`; `limits`: GB/s of reading memory;
    `environment`: variables that change how threads wait."""
    sides = [side for side in SIDES if side in args.sides]
    limit = statistics.median(limits)
    print(f"\n{args.threads} threads, a prompt of {args.prompt} tokens, {args.steps} steps, medians of "
          f"{args.rounds} rounds; reading memory {limit:.1f} GB/s ({min(limits):.1f} to {max(limits):.1f})\n\n"
          "tokens/s; in brackets: how many times as fast ree is\n")
    _row(["type", "", *sides])
    _row(["---", "---", *["---:"] * len(sides)])
    for kind in args.types:
        records = {side: [r for r in measurements if r["contestant"] == found[kind, side].name]
                   for side in sides if (kind, side) in found}
        for part, field, n in (("prompt", "prompt_seconds", args.prompt), ("steps", "steps_seconds", args.steps)):
            rates = {side: _rate(of_side, field, n) for side, of_side in records.items()}
            _row([kind if part == "prompt" else "", part,
                  *[f"{rates[side]:.1f}" + (f" ({rates['ree'] / rates[side]:.2f})" if side != "ree" else "")
                    if side in rates else "" for side in sides]])
        size = {side: found[kind, side].bytes_per_step for side in records}
        _row(["", "weights per step, MB", *[f"{size[side] / 1e6:.0f}" if side in size else "" for side in sides]])
        _row(["", "GB/s (of reading)",
              *[f"{rates[side] * size[side] / 1e9:.1f} ({rates[side] * size[side] / 1e9 / limit:.2f})"
                if side in size else "" for side in sides]])
        ours = records["ree"][0]["tokens"]
        equal = {side: next((i for i, (a, b) in enumerate(zip(ours, of_side[0]["tokens"])) if a != b), len(ours))
                 for side, of_side in records.items() if side != "ree"}
        _row(["", f"first tokens equal to ree's, of {len(ours)}", "",
              *[str(equal.get(side, "")) for side in sides if side != "ree"]])
    print()
    for name, value in environment.items():
        print(f"environment: {name}={value}")
    for kind in args.types:
        print(f"{kind}: {TYPES[kind]}")
    for side in sides:
        versions = sorted({r["version"] for r in measurements if r["side"] == side})
        if versions:
            print(f"{side}: {'; '.join(versions)}")
