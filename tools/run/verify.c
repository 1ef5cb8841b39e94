// ree-run verify: whether a receipt tells the truth.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "audit/verify.h"
#include "cli.h"
#include "inputs.h"
#include "parts.h"
#include "prompts.h"
#include "watch.h"
#include "receipts.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2

static const char help[] =
    "ree-run verify RECEIPT MODEL [options]: whether a receipt tells the truth\n"
    "\n"
    "MODEL is a copy of the model that the receipt names, in whatever form: a checkpoint's folder\n"
    "or what was exported from it. Any device will do. A line is printed for everything that is\n"
    "compared, 'NAME: agrees' or 'NAME: differs: ...', in this order:\n"
    "\n"
    "  receipt, prompt tokens, ...  the receipt's own hashes, and its signature\n"
    "  graph, weights               the model's\n"
    "  tokenizer                    that of the tokenizer, beside MODEL or named\n"
    "  finish                       the answer ends where tokens and parameters end it\n"
    "  decoded prompt, answer       the texts are what the tokens say\n"
    "  tokens, logits               what the model computes\n"
    "  input, output                of a run of tensors\n"
    "\n"
    "An answer is checked in one pass: the model runs over prompt and answer as over one prompt,\n"
    "and has to choose, at every position, the token that stands there. That is several times\n"
    "faster than making the answer was.\n"
    "\n"
    "how\n"
    "  --stepwise           make the answer anew, token by token\n"
    "  --trace FILE         make its trace anew, too, stepwise, and compare; it is written to "
    "FILE,\n"
    "                       for 'ree-run diff'\n"
    "  --tokenizer PATH     tokenizer.json, a folder with one, or a *.tiktoken file\n"
    "  --public-key FILE|HEX  the receipt has to be signed with this key ('ree-run help "
    "validate')\n"
    "  --json               one JSON object instead of text\n"
    "\n"
    "what a receipt does not tell\n"
    "  --prompt-text TEXT, --prompt-ids IDS, --messages FILE, --chat-family NAME, --raw-prompt\n"
    "                       the prompt of a private receipt, as it was given to 'generate'\n"
    "  --input NAME=FILE, --random-inputs N, --dim NAME=SIZE\n"
    "                       the inputs of a run of tensors, as they were given to 'run'\n"
    "\n"
    "where and how it runs (the bits do not depend on any of these)\n"
    "  --device, --threads, --cpu-isa, --form, --validation, --no-fuse, --no-fold\n"
    "                       see 'ree-run help run'\n" CLI_PARTS_HELP
    "  --prefill-chunk N    tokens in one run (otherwise 512)\n"
    "\n"
    "examples\n"
    "  ree-run tools/sample/stories --prompt-text \"Once upon a time\" --receipt-path r.json\n"
    "  ree-run verify r.json tools/sample/stories\n"
    "  ree-run verify r.json tools/sample/stories --device vulkan --stepwise\n"
    "\n"
    "exit status: 0 everything agrees, 1 something differs, 2 it cannot be checked (or wrong "
    "usage)\n";

struct options {
    const char *receipt, *model, *tokenizer, *chat_family, *key;
    struct cli_device device;
    struct cli_parts parts;
    struct prompt_arg *prompts;
    size_t n_prompts;
    struct run_inputs inputs;
    struct watch_options watch;
    uint64_t chunk;
    bool stepwise, raw, json, no_fuse, no_fold;
};

static bool prompt_option(struct cli *cli, struct options *o) {
    static const struct {
        const char *name;
        enum prompt_kind kind;
    } names[] = {{"--prompt-text", PROMPT_TEXT},
                 {"--prompt-ids", PROMPT_IDS},
                 {"--messages", PROMPT_MESSAGES}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = NULL;
        if (!cli_option(cli, names[i].name, &value)) continue;
        if (value) o->prompts[o->n_prompts++] = (struct prompt_arg){names[i].kind, value};
        return true;
    }
    return false;
}

static bool input_option(struct cli *cli, struct options *o) {
    const char *value = NULL;
    if (cli_option(cli, "--input", &value)) {
        if (value) o->inputs.args[o->inputs.n_args++] = value;
    } else if (cli_option(cli, "--dim", &value)) {
        if (value) run_inputs_add_dim(&o->inputs, cli, value);
    } else if (cli_option_number(cli, "--random-inputs", 0, UINT64_MAX, &o->inputs.seed)) {
        o->inputs.random = true;
    } else {
        return false;
    }
    return true;
}

static bool flag_option(struct cli *cli, struct options *o) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--stepwise", &o->stepwise},
                 {"--raw-prompt", &o->raw},
                 {"--json", &o->json},
                 {"--no-fuse", &o->no_fuse},
                 {"--no-fold", &o->no_fold}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (cli_flag(cli, flags[i].name)) return *flags[i].flag = true;
    return false;
}

static void parse(struct cli *cli, struct options *o) {
    while (cli_next(cli)) {
        if (prompt_option(cli, o) || input_option(cli, o) || flag_option(cli, o) ||
            cli_option(cli, "--tokenizer", &o->tokenizer) ||
            cli_option(cli, "--trace", &o->watch.trace) ||
            cli_option(cli, "--chat-family", &o->chat_family) ||
            cli_option(cli, "--public-key", &o->key) ||
            cli_option_number(cli, "--prefill-chunk", 1, 1 << 20, &o->chunk) ||
            cli_device_option(cli, &o->device) || cli_parts_option(cli, &o->parts))
            continue;
        if (!cli_positional(cli, o->receipt ? &o->model : &o->receipt)) cli_unknown(cli);
    }
    if (cli->failed) return;
    if (!o->receipt) cli_usage(cli, "no receipt is named");
    if (!o->model) cli_usage(cli, "no model is named");
    cli_parts_check(cli, &o->parts, &o->device);
    if (o->n_prompts > 1) cli_usage(cli, "a receipt is of one prompt");
    if (o->device.options.operation_set != REE_REPRODUCIBLE)
        cli_usage(cli, "only the operation set 'reproducible' can verify anything");
}

struct job {
    struct options *o;
    struct ree_receipt receipt;
    struct ree_verification v;
    struct ree_generator *generator; // of a text
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    struct ree_model *model; // of tensors
    struct ree_pipeline *pipeline;
    struct watch watch;
};

// What is not known of the model, the device or the inputs leaves a receipt unchecked.
static int cannot(const struct ree_error *err) {
    cli_fail(err);
    return CLI_CANNOT;
}

static void progress(void *user, const char *what, uint64_t done, uint64_t total) {
    if (strcmp(what, "running") != 0) cli_progress(user, what, done, total);
}

static int load_tokenizer(struct job *job) {
    struct ree_error err;
    const char *path = job->o->tokenizer;
    if (!path) path = ree_generator_info(job->generator)->folder;
    enum ree_status status = ree_tokenizer_load(path, &job->tokenizer, &err);
    if (status == REE_OK) return 0;
    job->tokenizer = NULL;
    return status == REE_NOT_FOUND && !job->o->tokenizer ? 0 : cannot(&err);
}

// Comes to nothing where no trace is wanted, or the model does not run.
static int begin_trace(struct job *job, const struct ree_model *model,
                       struct ree_pipeline *pipeline, size_t n_states,
                       const struct ree_state_spec *states) {
    struct ree_model_hashes hashes; // of the model, since they agreed
    memcpy(hashes.graph, job->receipt.graph_sha256, sizeof hashes.graph);
    memcpy(hashes.weights, job->receipt.weights_sha256, sizeof hashes.weights);
    struct watch_run run = {.model = model,
                            .hashes = &hashes,
                            .pipeline = pipeline,
                            .operation_set = REE_REPRODUCIBLE,
                            .prefill_chunk = job->receipt.trace_chunk,
                            .n_states = n_states,
                            .states = states};
    if (!job->o->watch.trace || job->v.differs) return 0;
    return watch_begin(&job->watch, &job->o->watch, &run) ? CLI_CANNOT : 0;
}

static int end_trace(struct job *job) {
    struct ree_traced traced;
    bool has_trace;
    if (!job->watch.n_steps) {
        if (job->o->watch.trace)
            ree_verify_add(&job->v, "trace", REE_VERIFY_NOT_CHECKED, "the model was not run");
        return 0;
    }
    if (watch_end(&job->watch, &traced, &has_trace)) return CLI_CANNOT;
    if (has_trace) ree_verify_trace(&job->v, &job->receipt, traced.root, traced.n_steps);
    return 0;
}

static int verify_text(struct job *job) {
    const struct options *o = job->o;
    struct ree_error err;
    struct ree_generator_options options = {
        .model = {.no_fold = o->no_fold, .on_progress = cli_progress},
        .session = {.no_fuse = o->no_fuse, .on_progress = progress},
        .prefill_chunk = o->watch.trace ? job->receipt.trace_chunk : (uint32_t)o->chunk,
        .all_logits = job->receipt.logits_sha256[0],
        .exact_lengths = o->watch.trace != NULL,
    };
    cli_parts_generator(&o->parts, &options);
    if (ree_generator_create(o->model, o->parts.devices[0], &options, &job->generator, &err) !=
        REE_OK)
        return cannot(&err);
    int code = load_tokenizer(job);
    if (!code)
        code = prompts_load(&job->prompts, o->prompts, o->n_prompts, job->tokenizer, o->chat_family,
                            o->raw);
    if (code) return CLI_CANNOT;
    struct ree_verify_text what = {.receipt = &job->receipt,
                                   .generator = job->generator,
                                   .tokenizer = job->tokenizer,
                                   .prompt = job->prompts.n ? job->prompts.list : NULL,
                                   .stepwise = o->stepwise || o->watch.trace,
                                   .traced = o->watch.trace != NULL};
    const struct ree_generator *g = job->generator;
    if (ree_verify_model(&job->v, &job->receipt, g->model, cli_progress, NULL, &err) != REE_OK)
        return cannot(&err);
    code = begin_trace(job, g->model, g->pipeline, g->roles.n_states, g->roles.states);
    if (code) return code;
    return ree_verify_text(&job->v, &what, &err) == REE_OK ? end_trace(job) : cannot(&err);
}

static int verify_tensors(struct job *job) {
    struct options *o = job->o;
    struct ree_error err;
    struct ree_model_options model_options = {.no_fold = o->no_fold, .on_progress = cli_progress};
    struct ree_session_options options = {.no_fuse = o->no_fuse, .on_progress = cli_progress};
    if (ree_model_load(o->model, &model_options, &job->model, &err) != REE_OK) return cannot(&err);
    if (ree_verify_model(&job->v, &job->receipt, job->model, cli_progress, NULL, &err) != REE_OK)
        return cannot(&err);
    if (job->v.differs) return 0; // its inputs may be others too
    if (run_inputs_load(&o->inputs, job->model)) return CLI_CANNOT;
    struct ree_pipeline_options divided = cli_parts_pipeline(&o->parts, &options);
    if (ree_pipeline_create(job->model, o->parts.devices, o->parts.n_devices, &divided, NULL, 0,
                            REE_NO_INPUT, &job->pipeline, &err) != REE_OK)
        return cannot(&err);
    struct ree_verify_tensors what = {.receipt = &job->receipt,
                                      .model = job->model,
                                      .pipeline = job->pipeline,
                                      .n_inputs = o->inputs.n_tensors,
                                      .inputs = o->inputs.tensors,
                                      .traced = o->watch.trace != NULL};
    int code = begin_trace(job, job->model, job->pipeline, 0, NULL);
    if (code) return code;
    return ree_verify_tensors(&job->v, &what, &err) == REE_OK ? end_trace(job) : cannot(&err);
}

static int verify(struct job *job) {
    struct options *o = job->o;
    struct ree_error err;
    bool text = job->receipt.kind == REE_RECEIPT_TEXT;
    if (text ? o->inputs.n_args || o->inputs.random : o->n_prompts > 0) {
        cli_error(text ? "%s: is a receipt of a text, which has a prompt and no --input"
                       : "%s: is a receipt of tensors, which has inputs and no prompt",
                  o->receipt);
        return CLI_USAGE;
    }
    ree_verify_receipt(&job->v, &job->receipt);
    char key[65];
    if (o->key && !cli_public_key(o->key, key)) return CLI_CANNOT;
    if (o->key) ree_verify_key(&job->v, &job->receipt, key);
    if (job->v.cannot[0]) return 0;
    if (o->watch.trace && !job->receipt.has_trace) {
        cli_error("%s: has no trace to compare one with", o->receipt);
        return CLI_CANNOT;
    }
    if (cli_parts_open(&o->parts, &o->device, &err) != REE_OK) return cannot(&err);
    return text ? verify_text(job) : verify_tensors(job);
}

static const char *result_name(const struct ree_verification *v) {
    return v->differs ? "differs" : ree_verification_holds(v) ? "verified" : "cannot be checked";
}

static const char *outcome_name(enum ree_verify_outcome outcome) {
    static const char *const names[] = {"agrees", "differs", "not checked"};
    return names[outcome];
}

static void report_text(const struct job *job, struct ree_strbuf *out) {
    const struct ree_verification *v = &job->v;
    for (size_t i = 0; i < v->n; i++) {
        cli_append_name(out, v->checks[i].name);
        ree_strbuf_printf(out, ": %s", outcome_name(v->checks[i].outcome));
        if (v->checks[i].detail[0]) ree_strbuf_append(out, ": ", 2);
        cli_append_name(out, v->checks[i].detail);
        ree_strbuf_append(out, "\n", 1);
    }
    ree_strbuf_printf(out, "\n%s", result_name(v));
    if (!v->differs && v->cannot[0]) {
        ree_strbuf_append(out, ": ", 2);
        cli_append_name(out, v->cannot);
    }
    if (v->n_runs)
        ree_strbuf_printf(out, " (%zu run%s of the model, %.3f s; %s)", v->n_runs,
                          v->n_runs == 1 ? "" : "s", v->run_seconds,
                          cli_parts_device(&job->o->parts));
    ree_strbuf_append(out, "\n", 1);
}

static void report_json(const struct job *job, struct ree_strbuf *out) {
    const struct ree_verification *v = &job->v;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "result", result_name(v));
    if (v->cannot[0]) cJSON_AddStringToObject(root, "reason", v->cannot);
    cJSON *checks = cJSON_AddArrayToObject(root, "checks");
    for (size_t i = 0; i < v->n; i++) {
        cJSON *check = cJSON_CreateObject();
        cJSON_AddStringToObject(check, "name", v->checks[i].name);
        cJSON_AddStringToObject(check, "outcome", outcome_name(v->checks[i].outcome));
        if (v->checks[i].detail[0]) cJSON_AddStringToObject(check, "detail", v->checks[i].detail);
        cJSON_AddItemToArray(checks, check);
    }
    if (job->o->parts.n_devices)
        cJSON_AddStringToObject(root, "device", cli_parts_device(&job->o->parts));
    cJSON_AddNumberToObject(root, "runs", (double)v->n_runs);
    cJSON_AddNumberToObject(root, "run_seconds", v->run_seconds);
    char *text = cJSON_PrintUnformatted(root);
    if (text && checks)
        ree_strbuf_printf(out, "%s\n", text);
    else
        out->failed = true;
    cJSON_free(text);
    cJSON_Delete(root);
}

static int report(struct job *job) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    if (job->v.failed) text.failed = true;
    if (job->o->json)
        report_json(job, &text);
    else
        report_text(job, &text);
    if (cli_print(&text)) return CLI_CANNOT;
    return job->v.differs ? CLI_DIFFERS : ree_verification_holds(&job->v) ? 0 : CLI_CANNOT;
}

static int run(struct options *o) {
    struct ree_error err;
    struct job job = {.o = o};
    ree_verification_init(&job.v);
    int code =
        ree_receipt_load(o->receipt, &job.receipt, &err) == REE_OK ? verify(&job) : cannot(&err);
    if (!code) code = report(&job);
    watch_finish(&job.watch);
    prompts_finish(&job.prompts);
    ree_tokenizer_destroy(job.tokenizer);
    ree_generator_destroy(job.generator);
    ree_pipeline_destroy(job.pipeline);
    ree_model_destroy(job.model);
    cli_parts_finish(&o->parts);
    ree_verification_finish(&job.v);
    ree_receipt_finish(&job.receipt);
    return code;
}

int ree_run_verify(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            struct ree_strbuf text;
            ree_strbuf_init(&text);
            ree_strbuf_printf(&text, "%s", help);
            return cli_print(&text);
        }
    o.prompts = calloc((size_t)argc, sizeof *o.prompts);
    o.inputs.args = calloc((size_t)argc, sizeof *o.inputs.args);
    o.inputs.dims = calloc((size_t)argc, sizeof *o.inputs.dims);
    int code = CLI_CANNOT;
    if (!o.prompts || !o.inputs.args || !o.inputs.dims) {
        cli_error("out of memory");
    } else {
        cli_init(&cli, argc, argv);
        parse(&cli, &o);
        code = cli.failed ? CLI_USAGE : run(&o);
    }
    free(o.prompts);
    run_inputs_finish(&o.inputs);
    return code;
}
