// ree-run export: writes a Hugging Face checkpoint as an ONNX model.
#include "commands.h"
#include "start.h"
#include "quantize.h"
#include "paths.h"

#include <string.h>

struct options {
    const char *folder, *out;
    uint64_t opset;
    struct cli_quantize quantize;
    struct ree_export_options export;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run export HF_DIR [options]: write a Hugging Face checkpoint as an ONNX model\n"
  "\n"
  "HF_DIR is a folder with config.json and the weights of a language model as safetensors, one\n"
  "file or several shards, as from_pretrained and the Hub's downloads leave it. The model is\n"
  "written to HF_DIR/model.onnx. This file is small: it refers to the weights in the\n"
  "safetensors files and keeps their types, so the weights are not copied and the safetensors\n"
  "files must stay.\n"
  "\n"
  "You can also run a folder without exporting it: ree-run accepts HF_DIR as MODEL, makes the\n"
  "same model in memory, and gives the same bits. --quantize and --activations work there\n"
  "too.\n"
  "\n"},
    {.name = "HF_DIR", .kind = ROW_POSITIONAL, .at = AT(folder), .path = CLI_READS_BESIDE},
    {.name = "-o", .value = "FILE.onnx", .kind = ROW_STRING, .at = AT(out), .path = CLI_WRITES,
     .help = "write the model to FILE.onnx (default HF_DIR/model.onnx). In another folder than "
             "HF_DIR it requires --colocate-tensors, because a model can refer only to files in "
             "its own folder"},
    {.name = "--colocate-tensors", .kind = ROW_FLAG, .at = AT(export.colocate_tensors),
     .help = "copy the weights to FILE.onnx.data, in the same folder as the model"},
    {.name = "--opset", .value = "N", .kind = ROW_CHOICE_OF_NUMBERS, .at = AT(opset), .choices = CLI_CHOICES("17", "23"),
     .help = "23 (default): operators for attention, rotary embedding and RMS norm; 17: the same "
             "computation in smaller operators, for software that lacks these. ree gives the same "
             "bits for both"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize)},
    {.kind = ROW_TEXT, .help =
  "\n"
  "architectures: llama, mistral, qwen2, qwen3, phi3, olmo2, smollm3, gemma3 (text only), gpt2\n"
  "\n"
  "the model\n"
  "  inputs    input_ids, position_ids           int64[batch, sequence]\n"
  "            past_key_values.LAYER.key, .value TYPE[batch, kv heads, past, head size]\n"
  "  outputs   logits                            float32[batch, sequence, vocabulary]\n"
  "            present.LAYER.key, .value         the past, followed by the new keys and values\n"
  "TYPE is float32; with --activations float16 or bfloat16, that type.\n"
  "position_ids decides which keys a token sees: a token at position p sees the keys 0 to p of\n"
  "the cache, and none after them. The first call has a past of length 0 and the\n"
  "positions 0, 1, 2, ...\n"
  "\n"
  "export opens only files in HF_DIR. Symbolic links may not lead out of it, with one\n"
  "exception: in a Hugging Face cache, links from snapshots/REVISION to files in the folder\n"
  "blobs next to snapshots.\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run export ~/models/SmolLM2-135M\n"
  "  ree-run export ~/models/Qwen3-0.6B -o qwen3.onnx --colocate-tensors --quantize 8\n"
  "  ree-run inspect ~/models/SmolLM2-135M\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_export_options = CLI_OPTION_TABLE(rows);

static bool is_narrow(enum ree_dtype activations) {
    return activations == REE_F16 || activations == REE_BF16;
}

static void parse(struct cli *cli, struct options *o) {
    cli_options_parse(cli, &ree_run_export_options, o);
    if (!o->folder) cli_usage(cli, "no folder given");
    cli_quantize_check(cli, &o->quantize);
    if (o->opset == 17 && is_narrow(cli_quantize_activations(&o->quantize)))
        cli_usage(cli, "--activations %s requires --opset 23", o->quantize.activations);
}

int ree_run_export(int argc, char **argv) {
    struct cli cli;
    struct options o = {.opset = 23};
    struct strbuf text;
    strbuf_init(&text);
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_export_options);
    cli_init(&cli, argc, argv);
    parse(&cli, &o);
    if (cli.failed) return CLI_USAGE;
    o.export.size = sizeof o.export;
    o.export.opset = (int64_t)o.opset;
    o.export.quantize_bits = (uint32_t)o.quantize.bits;
    o.export.quantize_block = (uint32_t)o.quantize.block;
    o.export.quantize_table = cli_quantize_table(&o.quantize);
    o.export.activations = cli_quantize_activations(&o.quantize);
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
