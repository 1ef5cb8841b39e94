#include "commands.h"

#include <string.h>

#define RUN(id) .run = ree_run_##id, .options = &ree_run_##id##_options

const struct cli_command cli_commands[] = {
    // clang-format off
    {"run", "MODEL [options]", "run a model once, print its outputs' SHA-256", RUN(run), .is_default = true},
    {"generate", "MODEL --prompt-text TEXT [options]", "continue a text", RUN(generate), .is_default = true},
    {"inspect", "MODEL", "show a model's inputs, outputs and operators", RUN(inspect)},
    {"export", "HF_DIR", "write a Hugging Face checkpoint as an ONNX model", RUN(export)},
    {"train", "STEP --data FILE", "train a model by a training step", RUN(train)},
    {"plan", "MODEL", "show how a model is divided into stages", RUN(plan)},
    {"verify", "RECEIPT MODEL", "check whether a receipt of a run is true", RUN(verify)},
    {"devices", "", "list the devices of this machine", RUN(devices)},
    {"bench", "...", "measure speed", RUN(bench)},
    {"perplexity", "MODEL --text FILE", "measure how well a model predicts a text", RUN(perplexity)},
    {"tokenize", "PATH", "convert text to token ids and back", RUN(tokenize)},
    {"validate", "RECEIPT", "check whether a receipt is complete and unaltered", RUN(validate)},
    {"compare", "MODEL --device A --device B", "find where two devices differ", RUN(compare)},
    {"diff", "TRACE TRACE", "find the first operator where two runs differ", RUN(diff)},
    {"dispute", "...", "find the same by exchanging few hashes", RUN(dispute)},
    {"referee", "CLAIM MODEL", "decide who is right about that operator", RUN(referee)},
    {"trace", "TRACE", "show what a trace contains", RUN(trace)},
    {"keygen", "FILE", "make keys to sign receipts with", RUN(keygen)},
    {"request", "MODEL", "ask somebody else for a run, for 'verify --request'", RUN(request)},
    // clang-format on
};
const size_t cli_n_commands = sizeof cli_commands / sizeof *cli_commands;

const struct cli_command *cli_find_command(const char *name) {
    for (size_t i = 0; i < cli_n_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}
