// ree-run export: writes a Hugging Face checkpoint as an ONNX model.
#include "start.h"
#include "quantize.h"
#include "paths.h"

#include <string.h>

static const char help[] =
    "ree-run export HF_DIR [options]: write a Hugging Face checkpoint as an ONNX model\n"
    "\n"
    "HF_DIR is a folder with config.json and the weights of a language model as safetensors, one\n"
    "file or several shards, as from_pretrained and the Hub's downloads leave it. The model is\n"
    "written to HF_DIR/model.onnx. This file is small: it refers to the weights in the\n"
    "safetensors files and keeps their types, so the weights are not copied and the safetensors\n"
    "files must stay.\n"
    "\n"
    "You can also run a folder without exporting it: ree-run accepts HF_DIR as MODEL, makes the\n"
    "same model in memory, and gives the same bits. --quantize works there too.\n"
    "\n"
    "  -o FILE.onnx         write the model to FILE.onnx (default HF_DIR/model.onnx). In another\n"
    "                       folder than HF_DIR it requires --colocate-tensors, because a model\n"
    "                       can refer only to files in its own folder\n"
    "  --colocate-tensors   copy the weights to FILE.onnx.data, in the same folder as the model\n"
    "  --opset N            23 (default): operators for attention, rotary embedding and RMS norm;\n"
    "                       17: the same computation in smaller operators, for software that\n"
    "                       lacks these. ree gives the same bits for both\n"
    "  --quantize BITS      4 or 8: quantise the matrices of the layers, and of the head if it is\n"
    "                       not the embedding table, in blocks of numbers that share a scale. The\n"
    "                       result is in FILE.onnx.data, and has the same bytes on every machine.\n"
    "                       Embeddings, norms and biases are not quantised\n"
    "  --block N            numbers per scale: 16, 32 (default), 64, 128 or 256\n"
    "\n"
    "architectures: llama, mistral, qwen2, qwen3, phi3, olmo2, smollm3, gemma3 (text only), gpt2\n"
    "\n"
    "the model\n"
    "  inputs    input_ids, position_ids           int64[batch, sequence]\n"
    "            past_key_values.LAYER.key, .value float32[batch, kv heads, past, head size]\n"
    "  outputs   logits                            float32[batch, sequence, vocabulary]\n"
    "            present.LAYER.key, .value         the past, followed by the new keys and values\n"
    "position_ids decides which keys a token sees: a token at position p sees the keys 0 to p of\n"
    "the cache, and none after them. The first call has a past of length 0 and the\n"
    "positions 0, 1, 2, ...\n"
    "\n"
    "export opens only files in HF_DIR. Symbolic links may not lead out of it, with one\n"
    "exception: in a Hugging Face cache, links from snapshots/REVISION to files in the folder\n"
    "blobs next to snapshots.\n" CLI_START_HELP_PLAIN "\n"
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
    if (!o->folder) cli_usage(cli, "no folder given");
    if (o->opset != 17 && o->opset != 23)
        cli_usage(cli, "--opset requires 17 or 23, not '%llu'", (unsigned long long)o->opset);
    cli_quantize_check(cli, &o->quantize);
}

int ree_run_export(int argc, char **argv) {
    struct cli cli;
    struct options o = {.opset = 23};
    struct strbuf text;
    strbuf_init(&text);
    if (cli_wants_help(argc, argv)) return cli_print_text(help);
    cli_init(&cli, argc, argv);
    parse(&cli, &o);
    if (cli.failed) return CLI_USAGE;
    o.export.size = sizeof o.export;
    o.export.opset = (int64_t)o.opset;
    o.export.quantize_bits = (uint32_t)o.quantize.bits;
    o.export.quantize_block = (uint32_t)o.quantize.block;
    o.export.progress = cli_reports;
    o.export.on_note = cli_note;
    struct ree_error err;
    if (!o.out) cli_path_add_suffixed(CLI_WRITES, o.folder, "/model.onnx");
    int code = cli_start(&(struct cli_start){0});
    if (code) return code;
    if (ree_export(o.folder, o.out, &o.export, &err) != REE_OK) return cli_fail(&err);
    cli_append_name(&text, o.out ? o.out : o.folder);
    strbuf_printf(&text, "%s\n", o.out ? "" : "/model.onnx");
    return cli_print(&text);
}
