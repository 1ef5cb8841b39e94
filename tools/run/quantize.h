// --quantize and --block, for an export and for a checkpoint's folder that is loaded directly.
#ifndef REE_TOOLS_RUN_QUANTIZE_H
#define REE_TOOLS_RUN_QUANTIZE_H

#include "ree.h"

struct cli;
struct cli_quantize {
    uint64_t bits, block; // 0: not given
};

#define CLI_QUANTIZE_HELP                                                                          \
    "  --quantize BITS, --block N\n"                                                               \
    "                       quantise the weights of a checkpoint's folder in memory, as\n"         \
    "                       'ree-run export' with these options; bits and hashes are those of\n"   \
    "                       the exported file\n"

// true: the current argument is one of these options.
bool cli_quantize_option(struct cli *cli, struct cli_quantize *quantize);
void cli_quantize_check(struct cli *cli, const struct cli_quantize *quantize);
void cli_quantize_model(const struct cli_quantize *quantize, struct ree_model_options *out);

#endif
