#include "quantize.h"

#include "cli.h"

static bool is_block(uint64_t n) {
    return n >= 16 && n <= 256 && (n & (n - 1)) == 0;
}

bool cli_quantize_option(struct cli *cli, struct cli_quantize *q) {
    const char *text = NULL;
    if (cli_option(cli, "--quantize", &text)) {
        bool ok = text && cli_parse_number(text, 4, 8, &q->bits) && (q->bits == 4 || q->bits == 8);
        if (text && !ok) cli_usage(cli, "--quantize requires 4 or 8, not '%s'", text);
        return true;
    }
    if (cli_option(cli, "--block", &text)) {
        bool ok = text && cli_parse_number(text, 16, 256, &q->block) && is_block(q->block);
        if (text && !ok) cli_usage(cli, "--block requires 16, 32, 64, 128 or 256, not '%s'", text);
        return true;
    }
    return false;
}

void cli_quantize_check(struct cli *cli, const struct cli_quantize *q) {
    if (q->block && !q->bits) cli_usage(cli, "--block requires --quantize");
}

void cli_quantize_model(const struct cli_quantize *q, struct ree_model_options *out) {
    out->quantize_bits = (uint32_t)q->bits;
    out->quantize_block = (uint32_t)q->block;
}
