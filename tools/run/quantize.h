// The options --quantize, --block, --quantize-table and --activations: for `ree-run export`, and
// for commands that load a checkpoint's folder directly.
#ifndef REE_TOOLS_RUN_QUANTIZE_H
#define REE_TOOLS_RUN_QUANTIZE_H

#include "ree.h"

struct cli;
struct cli_quantize {
    uint64_t bits, block;    // values of --quantize and --block; 0: not given
    const char *table;       // value of --quantize-table; NULL: not given
    const char *activations; // value of --activations; NULL: not given
};

// Help of the options of cli_quantize_group, for commands other than export.
#define CLI_QUANTIZE_HELP                                                                          \
    "  --quantize BITS, --block N, --quantize-table BITS\n"                                        \
    "                       quantise the weights of a checkpoint's folder in memory, as\n"         \
    "                       'ree-run export' with these options; bits and hashes are those of\n"   \
    "                       the exported file\n"                                                   \
    "  --activations TYPE   float32, float16, bfloat16 or int8: see 'ree-run help export'\n"

void cli_quantize_check(struct cli *cli, const struct cli_quantize *quantize);
// Returns the type that --activations names; REE_DTYPE_NONE: not given.
enum ree_dtype cli_quantize_activations(const struct cli_quantize *quantize);
// Returns the value for quantize_table of struct ree_export_options: 4, 8 or REE_QUANTIZE_KEEP; 0:
// not given.
uint32_t cli_quantize_table(const struct cli_quantize *quantize);
void cli_quantize_model(const struct cli_quantize *quantize, struct ree_model_options *out);

#endif
