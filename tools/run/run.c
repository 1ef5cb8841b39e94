// ree-run MODEL: one run of one model.
#include "cli.h"
#include "inputs.h"
#include "outputs.h"
#include "parts.h"
#include "receipts.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "ree-run MODEL [options]: run a model once and print its outputs' SHA-256\n"
    "\n"
    "MODEL is an ONNX file. Every output is printed as\n"
    "\n"
    "    NAME  TYPE[SHAPE]  SHA-256 of its type, shape and elements\n"
    "\n"
    "and below them one SHA-256 over all: two runs with the same line gave the same bits.\n"
    "\n"
    "inputs\n"
    "  --input NAME=FILE    the tensor for input NAME, as .npy (NumPy) or .pb (ONNX TensorProto);\n"
    "                       once for each input; just FILE when the model has one input. A\n"
    "                       sequence is a .pb (SequenceProto), or a .npy for each item in order\n"
    "  --random-inputs N    make the inputs that are not given from the seed N, the same on every\n"
    "                       machine: floats in [-1, 1), integers from 0 to 9\n"
    "  --dim NAME=SIZE      size of the symbolic dimension NAME of such inputs (otherwise 1)\n"
    "  --show-input         draw inputs that are one small grey image\n"
    "\n"
    "results\n"
    "  --output-dir DIR     write each output to DIR/NAME.npy (a sequence to NAME_0.npy, ...)\n"
    "  --top K              show the K largest entries of each row of float outputs, with names "
    "if\n"
    "                       the model has them (metadata 'labels', separated by commas)\n"
    "  --json               one JSON object instead of text\n"
    "  --stats              dispatches, memory and time, too\n" CLI_RECEIPT_HELP "\n" WATCH_HELP
    "\n"
    "where it runs (the bits do not depend on any of these)\n"
    "  --device DEVICE      cpu (the default), cuda or vulkan; cuda:INDEX or cuda:NAME (likewise\n"
    "                       vulkan) for one of several, NAME being a part of the device's name;\n"
    "                       'ree-run devices' lists them. Several, separated by commas: the model\n"
    "                       then runs in parts\n" CLI_PARTS_HELP
    "  --threads N          processor threads (otherwise one for each core)\n"
    "  --cpu-isa ISA        avx512, avx2, neon or portable (otherwise the best there is)\n"
    "  --no-fuse            one dispatch for each step, to see that fusion changes nothing\n"
    "  --no-fold            leave constant parts of the graph to the device, likewise\n"
    "  --form FORM          Vulkan arithmetic: native, float64, float32 or integer; refused where\n"
    "                       the probe of the device found it wrong\n"
    "  --validation         Vulkan validation layer; a message from it fails the run\n"
    "\n"
    "what it promises\n"
    "  --operation-set SET  reproducible (the default): these bits on every device; "
    "deterministic:\n"
    "                       the same bits again on the same device and driver; default: none. The\n"
    "                       last two take the vendor's libraries where a device has them, to see\n"
    "                       what reproducibility costs\n"
    "\n"
    "examples\n"
    "  ree-run tools/sample/digits.onnx --input tools/sample/seven.npy --show-input --top 3\n"
    "  ree-run model.onnx --input x=x.npy --input mask=mask.npy --output-dir results\n"
    "  ree-run model.onnx --random-inputs 1 --dim batch=4 --device vulkan:nvidia --json\n"
    "\n"
    "exit status: 0 success, 1 failure, 2 wrong usage\n";

struct options {
    const char *model, *output_dir;
    struct cli_device device;
    struct cli_parts parts;
    struct run_inputs inputs;
    uint64_t top;
    struct cli_receipt receipt;
    struct watch_options watch;
    bool no_fuse, no_fold, json, stats, show_input;
};

static void parse(struct cli *cli, struct options *o) {
    while (cli_next(cli)) {
        const char *value = NULL;
        if (cli_option(cli, "--input", &value)) {
            if (value) o->inputs.args[o->inputs.n_args++] = value;
        } else if (cli_option(cli, "--dim", &value)) {
            if (value) run_inputs_add_dim(&o->inputs, cli, value);
        } else if (cli_option_number(cli, "--random-inputs", 0, UINT64_MAX, &o->inputs.seed)) {
            o->inputs.random = true;
        } else if (cli_option_number(cli, "--top", 1, 1000, &o->top) ||
                   cli_option(cli, "--output-dir", &o->output_dir) ||
                   cli_receipt_option(cli, &o->receipt) || watch_option(cli, &o->watch) ||
                   cli_device_option(cli, &o->device) || cli_parts_option(cli, &o->parts)) {
            continue;
        } else if (cli_flag(cli, "--no-fuse")) {
            o->no_fuse = true;
        } else if (cli_flag(cli, "--no-fold")) {
            o->no_fold = true;
        } else if (cli_flag(cli, "--json")) {
            o->json = true;
        } else if (cli_flag(cli, "--stats")) {
            o->stats = true;
        } else if (cli_flag(cli, "--show-input")) {
            o->show_input = true;
        } else if (!cli_positional(cli, &o->model)) {
            cli_unknown(cli);
        }
    }
    if (!o->model) cli_usage(cli, "no model is named");
    cli_parts_check(cli, &o->parts, &o->device);
    cli_receipt_check(cli, &o->receipt);
    watch_check(cli, &o->watch);
    if (o->receipt.is_private)
        cli_usage(cli, "--private is of texts; a receipt of tensors has nothing but hashes");
}

// Prints the inputs that are images, if asked to, and then the report.
static int print_results(const struct options *o, const struct run_report *report) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    for (size_t i = 0; o->show_input && !o->json && i < o->inputs.n_tensors; i++)
        run_show_image(&o->inputs.tensors[i], &text);
    if (o->json)
        run_report_json(report, &text);
    else
        run_report_text(report, &text);
    return cli_print(&text);
}

static int save_receipt(const struct options *o, const struct run_report *report,
                        char receipt_hash[65]) {
    struct ree_error err;
    struct ree_model_hashes hashes;
    struct ree_receipt receipt;
    if (!o->receipt.path) return 0;
    if (ree_model_hashes_make(report->model, cli_progress, NULL, &hashes, &err) != REE_OK)
        return cli_fail(&err);
    struct ree_tensors_run run = {.of = report->model,
                                  .model = &hashes,
                                  .operation_set = report->operation_set,
                                  .n_inputs = o->inputs.n_tensors,
                                  .inputs = o->inputs.tensors,
                                  .n_outputs = report->n_outputs,
                                  .outputs = report->outputs,
                                  .trace = report->trace,
                                  .device = report->device};
    int code = ree_receipt_make_tensors(&run, &receipt, &err) == REE_OK
                   ? cli_receipt_save(&o->receipt, &receipt)
                   : cli_fail(&err);
    if (!code) memcpy(receipt_hash, receipt.receipt_hash, sizeof receipt.receipt_hash);
    ree_receipt_finish(&receipt);
    return code;
}

static int run(struct options *o) {
    struct ree_error err;
    struct ree_model *model = NULL;
    struct ree_pipeline *pipeline = NULL;
    struct ree_tensor *outputs = NULL;
    size_t n_outputs = 0;
    char receipt_hash[65] = "";
    struct watch watch = {0};
    struct ree_traced traced;
    bool has_trace = false;
    int code = cli_receipt_prepare(&o->receipt);
    if (code) return code;

    struct ree_model_options model_options = {.no_fold = o->no_fold, .on_progress = cli_progress};
    if (ree_model_load(o->model, &model_options, &model, &err) != REE_OK) return cli_fail(&err);
    // Inputs before the device: a missing one should be said at once.
    code = run_inputs_load(&o->inputs, model);
    if (code) goto done;
    if (cli_parts_open(&o->parts, &o->device, &err) != REE_OK) {
        code = cli_fail(&err);
        goto done;
    }
    struct ree_session_options options = {.no_fuse = o->no_fuse, .on_progress = cli_progress};
    struct ree_pipeline_options divided = cli_parts_pipeline(&o->parts, &options);
    if (ree_pipeline_create(model, o->parts.devices, o->parts.n_devices, &divided, NULL, 0,
                            REE_NO_INPUT, &pipeline, &err) != REE_OK) {
        code = cli_fail(&err);
        goto done;
    }
    struct watch_run watched = {
        .model = model, .pipeline = pipeline, .operation_set = o->device.options.operation_set};
    code = watch_begin(&watch, &o->watch, &watched);
    if (code) goto done;
    outputs = calloc(ree_model_n_outputs(model) + 1, sizeof *outputs);
    if (!outputs) {
        cli_error("out of memory");
        code = CLI_FAILED;
        goto done;
    }
    if (ree_pipeline_run(pipeline, o->inputs.tensors, o->inputs.n_tensors, outputs, &err) !=
        REE_OK) {
        code = cli_fail(&err);
        goto done;
    }
    n_outputs = ree_model_n_outputs(model);
    code = watch_end(&watch, &traced, &has_trace);
    if (code) goto done;

    struct ree_session_stats stats;
    ree_pipeline_stats(pipeline, &stats);
    struct run_report report = {
        .model = model,
        .device = cli_parts_device(&o->parts),
        .operation_set = o->device.options.operation_set,
        .n_outputs = n_outputs,
        .outputs = outputs,
        .top = (uint32_t)o->top,
        .stats = o->stats ? &stats : NULL,
        .pipeline = pipeline,
        .receipt_hash = receipt_hash,
        .trace = has_trace ? &traced : NULL,
    };
    // Files first: what is printed is then true of what was written.
    if (o->output_dir) code = run_save_outputs(&report, o->output_dir);
    if (code == 0) code = save_receipt(o, &report, receipt_hash);
    if (code == 0) code = print_results(o, &report);
done:
    for (size_t i = 0; i < n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    free(outputs);
    watch_finish(&watch);
    ree_pipeline_destroy(pipeline);
    cli_parts_finish(&o->parts);
    ree_model_destroy(model);
    return code;
}

int ree_run_run(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            struct ree_strbuf text;
            ree_strbuf_init(&text);
            ree_strbuf_printf(&text, "%s", help);
            return cli_print(&text);
        }
    o.inputs.args = calloc((size_t)argc, sizeof *o.inputs.args);
    o.inputs.dims = calloc((size_t)argc, sizeof *o.inputs.dims);
    cli_init(&cli, argc, argv);
    int code;
    if (!o.inputs.args || !o.inputs.dims) {
        cli_error("out of memory");
        code = CLI_FAILED;
    } else {
        parse(&cli, &o);
        code = cli.failed ? CLI_USAGE : run(&o);
    }
    run_inputs_finish(&o.inputs);
    return code;
}
