// --quantize, --block, --quantize-table and --activations, for an export and for a checkpoint's
// folder that is loaded directly.
#ifndef REE_TOOLS_RUN_QUANTIZE_H
#define REE_TOOLS_RUN_QUANTIZE_H

#include "ree.h"

struct cli;
struct cli_quantize {
    uint64_t bits, block;    // 0: not given
    const char *table;       // NULL: not given
    const char *activations; // likewise
};

// The options are cli_quantize_group; this is their help in commands other than export.
#define CLI_QUANTIZE_HELP                                                                          \
    "  --quantize BITS, --block N, --quantize-table BITS\n"                                        \
    "                       quantise the weights of a checkpoint's folder in memory, as\n"         \
    "                       'ree-run export' with these options; bits and hashes are those of\n"   \
    "                       the exported file\n"                                                   \
    "  --activations TYPE   float32, float16, bfloat16 or int8: see 'ree-run help export'\n"

void cli_quantize_check(struct cli *cli, const struct cli_quantize *quantize);
// Returns the type that --activations names; REE_DTYPE_NONE: not given.
enum ree_dtype cli_quantize_activations(const struct cli_quantize *quantize);
uint32_t cli_quantize_table(const struct cli_quantize *quantize); // as in struct ree_export_options
void cli_quantize_model(const struct cli_quantize *quantize, struct ree_model_options *out);

#endif
