// ree-run MODEL: runs one model once.
#include "cli.h"
#include "commands.h"
#include "option_groups.h"
#include "inputs.h"
#include "outputs.h"
#include "stage_options.h"
#include "quantize.h"
#include "receipts.h"
#include "paths.h"
#include "start.h"
#include "trace_options.h"

#include <stdlib.h>
#include <string.h>

struct options {
    const char *model, *output_dir;
    struct cli_quantize quantize;
    struct cli_device device;
    struct cli_stages stages;
    struct run_inputs inputs;
    uint64_t top;
    struct cli_receipt receipt;
    struct trace_options tracing;
    bool no_fuse, no_fold, json, stats, show_input;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run MODEL [options]: run a model once and print its outputs' SHA-256\n"
  "\n"
  "MODEL is an ONNX file, or a folder with a Hugging Face checkpoint. Every output is printed as\n"
  "\n"
  "    NAME  TYPE[SHAPE]  SHA-256 of its type, shape and elements\n"
  "\n"
  "After the outputs follows one SHA-256 over all of them: two runs that print the same line gave\n"
  "the same bits.\n"
  "\n"
  "inputs\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.kind = ROW_GROUP, .group = &cli_inputs_group, .at = AT(inputs)},
    {.kind = ROW_GROUP, .group = &cli_random_group, .at = AT(inputs)},
    {.name = "--show-input", .kind = ROW_FLAG, .at = AT(show_input),
     .help = "draw an input that is a small grey image as text"},

    {.kind = ROW_TEXT, .help = "\nresults\n"},
    {.name = "--output-dir", .value = "DIR", .kind = ROW_STRING, .at = AT(output_dir), .path = CLI_FILLS,
     .help = "write each output to DIR/NAME.npy (a sequence to NAME_0.npy, ...)"},
    {.name = "--top", .value = "K", .kind = ROW_NUMBER, .at = AT(top), .min = 1, .max = 1000,
     .help = "print the K largest elements, 1 to 1000, of each row of float outputs, with their "
             "names if the model has them (metadata 'labels', separated by commas)"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.name = "--stats", .kind = ROW_FLAG, .at = AT(stats),
     .help = "also print dispatches, memory and time"},
    {.kind = ROW_GROUP, .group = &cli_receipt_group, .at = AT(receipt)},
    // A usage error: tensors have no texts to hide.
    {.name = "--private", .kind = ROW_FLAG, .at = AT(receipt.is_private), .is_unlisted = true},
    {.kind = ROW_TEXT, .help = "\n"},
    {.kind = ROW_GROUP, .group = &cli_trace_group, .at = AT(tracing)},

    {.kind = ROW_TEXT, .help = "\nweights\n"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},

    {.kind = ROW_TEXT, .help = "\ndevices (the bits do not depend on these options)\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device)},
    {.kind = ROW_GROUP, .group = &cli_stages_group, .at = AT(stages)},
    {.name = "--no-fuse", .kind = ROW_FLAG, .at = AT(no_fuse),
     .help = "do not fuse operations: one dispatch each, to check that fusion changes no bits"},
    {.name = "--no-fold", .kind = ROW_FLAG, .at = AT(no_fold),
     .help = "compute constant parts of the graph on the device in every run, to check that "
             "folding changes no bits"},

    {.kind = ROW_TEXT, .help =
  "\n"
  "promise\n"
  "  --operation-set SET  reproducible (the default): the same bits on every device;\n"
  "                       deterministic: the same bits again on the same device and driver;\n"
  "                       default: no promise. The last two use the vendor's libraries, if the\n"
  "                       device has them, to show what reproducibility costs\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "for tests of ree itself\n" CLI_DEVICE_TEST_HELP
  "\n"
  "examples\n"
  "  ree-run tools/sample/digits.onnx --input tools/sample/seven.npy --show-input --top 3\n"
  "  ree-run model.onnx --input x=x.npy --input mask=mask.npy --output-dir results\n"
  "  ree-run model.onnx --random-inputs 1 --dim batch=4 --device vulkan:nvidia --json\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_run_options = CLI_OPTION_TABLE(rows);

static void parse(struct cli *cli, struct options *o) {
    cli_options_parse(cli, &ree_run_run_options, o);
    if (cli->failed) return;
    if (!o->model) cli_usage(cli, "no model given");
    cli_quantize_check(cli, &o->quantize);
    cli_stages_check(cli, &o->stages, &o->device);
    cli_receipt_check(cli, &o->receipt);
    trace_options_check(cli, &o->tracing);
    if (o->receipt.path && o->tracing.trace && o->no_fold) cli_usage(cli, CLI_TRACE_IS_FOLDED);
    if (o->receipt.is_private)
        cli_usage(cli, "--private requires a prompt; a receipt of tensors contains only hashes");
}

// Prints the inputs that are images, if requested, and then the report.
static int print_results(const struct options *o, const struct run_report *report) {
    struct strbuf text;
    strbuf_init(&text);
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
    struct ree_receipt *receipt = NULL;
    if (!o->receipt.path) return 0;
    struct ree_receipt_trace trace;
    struct ree_receipt_options options = {.size = sizeof options,
                                          .trace = cli_receipt_trace(report->trace, &trace),
                                          .progress = cli_reports};
    int code = ree_receipt_create_tensors(report->model, o->stages.devices, o->stages.n_devices,
                                          o->inputs.tensors, o->inputs.n_tensors, report->outputs,
                                          &options, &receipt, &err) == REE_OK
                   ? cli_receipt_save(&o->receipt, receipt)
                   : cli_fail(&err);
    if (!code) memcpy(receipt_hash, ree_receipt_info(receipt)->receipt_hash, 65);
    ree_receipt_destroy(receipt);
    return code;
}

static int run(struct options *o) {
    struct ree_error err;
    struct ree_model *model = NULL;
    struct ree_pipeline *pipeline = NULL;
    struct ree_tensor *outputs = NULL;
    size_t n_outputs = 0;
    char receipt_hash[65] = "";
    struct tracing tracing = {0};
    struct traced traced;
    bool has_trace = false;
    int code = cli_receipt_prepare(&o->receipt);
    if (code) return code;

    struct ree_model_options model_options = {
        .size = sizeof model_options, .no_fold = o->no_fold, .progress = cli_reports};
    cli_quantize_model(&o->quantize, &model_options);
    if (ree_model_load(o->model, &model_options, &model, &err) != REE_OK) return cli_fail(&err);
    cli_print_notes(model);
    // The inputs are loaded before the device is opened, so that a missing input is reported
    // immediately.
    code = run_inputs_load(&o->inputs, model);
    if (code) goto done;
    if (cli_stages_open(&o->stages, &o->device, &err) != REE_OK) {
        code = cli_fail(&err);
        goto done;
    }
    struct ree_session_options options = {
        .size = sizeof options, .no_fuse = o->no_fuse, .progress = cli_reports};
    struct ree_stages_options divided = cli_stages_pipeline(&o->stages, &options);
    if (ree_pipeline_open(model, o->stages.devices, o->stages.n_devices, &divided, &pipeline,
                          &err) != REE_OK) {
        code = cli_fail(&err);
        goto done;
    }
    struct traced_run traced_run = {.pipeline = pipeline};
    code = tracing_begin(&tracing, &o->tracing, &traced_run);
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
    budget_results();
    code = tracing_end(&tracing, &traced, &has_trace);
    if (code) goto done;

    struct ree_session_stats stats = {.size = sizeof stats};
    ree_pipeline_stats(pipeline, &stats, NULL);
    struct run_report report = {
        .model = model,
        .device = cli_stages_device(&o->stages),
        .operation_set = o->device.options.operation_set,
        .n_outputs = n_outputs,
        .outputs = outputs,
        .top = (uint32_t)o->top,
        .stats = o->stats ? &stats : NULL,
        .pipeline = pipeline,
        .receipt_hash = receipt_hash,
        .trace = has_trace ? &traced : NULL,
    };
    // Writes the files before the report, which is printed only if they were written.
    if (o->output_dir) code = run_save_outputs(&report, o->output_dir);
    if (code == 0) code = save_receipt(o, &report, receipt_hash);
    if (code == 0) code = print_results(o, &report);
done:
    for (size_t i = 0; i < n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    free(outputs);
    tracing_finish(&tracing);
    ree_pipeline_destroy(pipeline);
    cli_stages_finish(&o->stages);
    ree_model_destroy(model);
    return code;
}

int ree_run_run(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    int code = CLI_FAILED;
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_run_options);
    cli_init(&cli, argc, argv);
    if (run_inputs_init(&o.inputs, argc)) {
        parse(&cli, &o);
        const struct cli_start start = {.uses = sandbox_uses(o.device.spec)};
        code = cli.failed ? CLI_USAGE : cli_start(&start);
        if (!code) code = run(&o);
    }
    run_inputs_finish(&o.inputs);
    return code;
}
