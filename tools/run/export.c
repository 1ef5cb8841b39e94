// ree-run export: writes a Hugging Face checkpoint as an ONNX model.
#include "start.h"
#include "quantize.h"

#include <string.h>

static const char help[] =
    "ree-run export HF_DIR [options]: write a Hugging Face checkpoint as an ONNX model\n"
    "\n"
    "HF_DIR is a folder with config.json and the weights of a language model as safetensors, one\n"
    "file or several shards, as from_pretrained and the Hub's downloads leave it. The model is\n"
    "written to HF_DIR/model.onnx. It is small: it points to the weights in the safetensors files\n"
    "and keeps their types, so nothing is copied, and those files have to stay.\n"
    "\n"
    "A folder need not be exported to be run: ree-run takes HF_DIR itself as a MODEL, makes the\n"
    "same model in memory, and gives the same bits. --quantize goes there, too.\n"
    "\n"
    "  -o FILE.onnx         write it elsewhere. In another folder than HF_DIR a model cannot "
    "reach\n"
    "                       the weights, so that needs --colocate-tensors\n"
    "  --colocate-tensors   copy the weights to FILE.onnx.data, beside the model\n"
    "  --opset N            23 (the default): operators for attention, rotary embedding and RMS\n"
    "                       norms; 17: their steps, for software that does not have those\n"
    "                       operators yet. ree gives the same bits for both\n"
    "  --quantize BITS      4 or 8: the layers' matrices, and the head's where it is not the\n"
    "                       embedding table, in blocks of numbers that share a scale, in\n"
    "                       FILE.onnx.data. Embeddings, norms and biases stay as they are. The\n"
    "                       same bytes on every machine\n"
    "  --block N            numbers to a scale: 16, 32 (the default), 64, 128 or 256\n"
    "\n"
    "architectures: llama, mistral, qwen2, qwen3, phi3, olmo2, smollm3, gemma3 (its text part), "
    "gpt2\n"
    "\n"
    "the model\n"
    "  inputs    input_ids, position_ids           int64[batch, sequence]\n"
    "            past_key_values.LAYER.key, .value float32[batch, kv heads, past, head size]\n"
    "  outputs   logits                            float32[batch, sequence, vocabulary]\n"
    "            present.LAYER.key, .value         the past with the new keys and values behind\n"
    "position_ids decides all: a token at position p sees the keys 0 to p of the cache, whatever\n"
    "lies behind them. A first call has a past of length 0 and the positions 0, 1, 2, ...\n"
    "\n"
    "Files are opened in HF_DIR only. Symbolic links may not lead out of it, with one exception:\n"
    "those of a Hugging Face cache, from snapshots/REVISION to a file in the blobs folder beside\n"
    "snapshots.\n" CLI_START_HELP_PLAIN "\n"
    "examples\n"
    "  ree-run export ~/models/SmolLM2-135M\n"
    "  ree-run export ~/models/Qwen3-0.6B -o qwen3.onnx --colocate-tensors --quantize 8\n"
    "  ree-run inspect ~/models/SmolLM2-135M\n"
    "\n"
    "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n";

struct options {
    const char *folder, *out;
    uint64_t opset;
    struct cli_quantize quantize;
    struct ree_export_options export;
};

static void parse(struct cli *cli, struct options *o) {
    while (cli_next(cli)) {
        if (cli_flag(cli, "--colocate-tensors"))
            o->export.colocate_tensors = true;
        else if (cli_option_path(cli, "-o", CLI_WRITES, &o->out) ||
                 cli_option_number(cli, "--opset", 17, 23, &o->opset) ||
                 cli_quantize_option(cli, &o->quantize))
            continue;
        else if (!cli_positional_path(cli, CLI_READS_BESIDE, &o->folder))
            cli_unknown(cli);
    }
    if (!o->folder) cli_usage(cli, "no folder is named");
    if (o->opset != 17 && o->opset != 23)
        cli_usage(cli, "--opset wants 17 or 23, not '%llu'", (unsigned long long)o->opset);
    cli_quantize_check(cli, &o->quantize);
}

int ree_run_export(int argc, char **argv) {
    struct cli cli;
    struct options o = {.opset = 23};
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    if (cli_wants_help(argc, argv)) return cli_print_text(help);
    cli_init(&cli, argc, argv);
    parse(&cli, &o);
    if (cli.failed) return CLI_USAGE;
    o.export.opset = (int64_t)o.opset;
    o.export.quantize_bits = (uint32_t)o.quantize.bits;
    o.export.quantize_block = (uint32_t)o.quantize.block;
    o.export.on_progress = cli_progress;
    o.export.on_note = cli_note;
    struct ree_error err;
    if (!o.out) cli_path_add_suffixed(CLI_WRITES, o.folder, "/model.onnx");
    int code = cli_start(&(struct cli_start){0});
    if (code) return code;
    if (ree_export(o.folder, o.out, &o.export, &err) != REE_OK) return cli_fail(&err);
    cli_append_name(&text, o.out ? o.out : o.folder);
    ree_strbuf_printf(&text, "%s\n", o.out ? "" : "/model.onnx");
    return cli_print(&text);
}
