"""What every program measures: a prompt after a warm-up, then single steps."""
import json
import sys
import time

WARM_UP = 8  # tokens


def prompt_ids(n):
    return [(i * 7919) % 150000 for i in range(n)]


def measure(version, run):
    """Measures `run` as sys.argv states: prompt length, number of steps. Prints a JSON object.

    run(ids, position) computes `ids` at `position` of the sequence and returns the most likely next
    token; position 0 begins a new sequence.
    """
    n_prompt, n_steps = map(int, sys.argv[-2:])
    ids = prompt_ids(n_prompt)
    run(ids[:WARM_UP], 0)
    start = time.perf_counter()
    tokens = [run(ids, 0)]
    middle = time.perf_counter()
    for i in range(n_steps):
        tokens.append(run(tokens[-1:], n_prompt + i))
    end = time.perf_counter()
    print(json.dumps({"prompt_seconds": middle - start, "steps_seconds": end - middle,
                      "tokens": tokens, "version": version}))
