#include "quantize.h"

#include "option_groups.h"

static const struct cli_option_row rows[] = {
    {.name = "--quantize",
     .value = "BITS",
     .kind = ROW_CHOICE_OF_NUMBERS,
     .at = offsetof(struct cli_quantize, bits),
     .choices = CLI_CHOICES("4", "8"),
     .help =
         "4 or 8: quantise the matrices of the layers, and of the head if it is not the "
         "embedding table, in blocks of numbers that share a scale. The result is in "
         "FILE.onnx.data, and has the same bytes on every machine. Embeddings, norms and biases "
         "are not quantised"},
    {.name = "--block",
     .value = "N",
     .kind = ROW_CHOICE_OF_NUMBERS,
     .at = offsetof(struct cli_quantize, block),
     .choices = CLI_CHOICES("16", "32", "64", "128", "256"),
     .help = "numbers per scale: 16, 32 (default), 64, 128 or 256"},
};
const struct cli_option_table cli_quantize_group = CLI_OPTION_TABLE(rows);

void cli_quantize_check(struct cli *cli, const struct cli_quantize *q) {
    if (q->block && !q->bits) cli_usage(cli, "--block requires --quantize");
}

void cli_quantize_model(const struct cli_quantize *q, struct ree_model_options *out) {
    out->quantize_bits = (uint32_t)q->bits;
    out->quantize_block = (uint32_t)q->block;
}
