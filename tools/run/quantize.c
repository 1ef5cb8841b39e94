#include "quantize.h"

#include "option_groups.h"

#include <string.h>

static const struct cli_option_row rows[] = {
    {.name = "--quantize",
     .value = "BITS",
     .kind = ROW_CHOICE_OF_NUMBERS,
     .at = offsetof(struct cli_quantize, bits),
     .choices = CLI_CHOICES("4", "8"),
     .help =
         "4 or 8: quantise the matrices of the layers and of the head, in blocks of numbers that "
         "share a scale. The result is in FILE.onnx.data, and has the same bytes on every machine. "
         "Norms, biases, and embeddings that are not also the head are not quantised"},
    {.name = "--block",
     .value = "N",
     .kind = ROW_CHOICE_OF_NUMBERS,
     .at = offsetof(struct cli_quantize, block),
     .choices = CLI_CHOICES("16", "32", "64", "128", "256"),
     .help = "numbers per scale: 16, 32 (default), 64, 128 or 256"},
    {.name = "--quantize-table",
     .value = "BITS",
     .kind = ROW_CHOICE,
     .at = offsetof(struct cli_quantize, table),
     .choices = CLI_CHOICES("4", "8", "keep"),
     .help =
         "4, 8 (default) or keep: bits of an embedding table that is also the head. keep: it is "
         "not quantised, as in versions before 0.2.0"},
    {.name = "--activations",
     .value = "TYPE",
     .kind = ROW_CHOICE,
     .at = offsetof(struct cli_quantize, activations),
     .choices = CLI_CHOICES("float32", "float16", "bfloat16", "int8"),
     .help =
         "type of the values between the layers and of the key-value caches: float32 (default), "
         "float16 or bfloat16 (opset 23). Sums, norms and softmax are computed in float32 with "
         "each. int8: as float32, but products with quantised weights round blocks of 32 inputs "
         "to int8 with a scale, which makes them faster; only ree knows this operator"},
};
const struct cli_option_table cli_quantize_group = CLI_OPTION_TABLE(rows);

void cli_quantize_check(struct cli *cli, const struct cli_quantize *q) {
    if (q->block && !q->bits) cli_usage(cli, "--block requires --quantize");
    if (q->table && !q->bits) cli_usage(cli, "--quantize-table requires --quantize");
    if (q->activations && !q->bits && strcmp(q->activations, "int8") == 0)
        cli_usage(cli, "--activations int8 requires a checkpoint's folder and --quantize");
}

enum ree_dtype cli_quantize_activations(const struct cli_quantize *q) {
    if (!q->activations) return REE_DTYPE_NONE;
    if (!strcmp(q->activations, "float32")) return REE_F32;
    if (!strcmp(q->activations, "int8")) return REE_I8;
    return !strcmp(q->activations, "float16") ? REE_F16 : REE_BF16;
}

uint32_t cli_quantize_table(const struct cli_quantize *q) {
    if (!q->table) return 0;
    return strcmp(q->table, "keep") == 0 ? REE_QUANTIZE_KEEP : (uint32_t)(q->table[0] - '0');
}

void cli_quantize_model(const struct cli_quantize *q, struct ree_model_options *out) {
    out->quantize_bits = (uint32_t)q->bits;
    out->quantize_block = (uint32_t)q->block;
    out->quantize_table = cli_quantize_table(q);
    out->activations = cli_quantize_activations(q);
}
