// ree-run compare: one model on two devices, every node of every step.
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/compare_text.h"
#include "audit/html.h"
#include "audit/suspects.h"
#include "base/file.h"
#include "base/status.h"
#include "cli.h"
#include "inputs.h"
#include "prompts.h"
#include "session/profile.h"
#include "watch.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2

static const char help[] =
    "ree-run compare MODEL --device A --device B [options]: where two devices part\n"
    "\n"
    "Runs the model on both and compares, byte by byte, what every node computed. Prints the "
    "first\n"
    "node that differs, how far its elements are apart and which of the devices' primitives it\n"
    "depends on that are not computed natively; then how the difference grows from node to node.\n"
    "\n"
    "what is run\n"
    "  a language model     --prompt-text TEXT or --prompt-ids IDS, --max-new-tokens N (otherwise\n"
    "                       16), --prefill-chunk N (otherwise 64), --tokenizer PATH, "
    "--ignore-eos;\n"
    "                       see 'ree-run help generate'. Both are given the same tokens: those "
    "that\n"
    "                       A finds the likeliest\n"
    "  any other model      --input NAME=FILE, --random-inputs SEED, --dim NAME=N; see 'ree-run "
    "help\n"
    "                       run'\n"
    "\n"
    "where: each of these once, for both, or twice, for A and then for B\n"
    "  --device SPEC        cpu, cuda, vulkan, vulkan:1, vulkan:NAME, ... (otherwise cpu)\n"
    "  --operation-set SET  reproducible (the default), deterministic or default\n"
    "  --threads N, --cpu-isa ISA, --form FORM, --break-primitive NAME\n"
    "                       see 'ree-run help run'\n"
    "\n"
    "results\n"
    "  --all                every node in the table, and not just those that differ\n"
    "  --json               one JSON object instead of text\n"
    "  --html FILE          a page with a picture of the difference over depth, and the table\n"
    "  --inject-fault NODE:STEP:BIT[:OUTPUT]\n"
    "                       for tests: flip one bit on B\n"
    "\n"
    "examples\n"
    "  ree-run compare tools/sample/stories --prompt-text \"Once upon a time\" \\\n"
    "      --device cpu --device vulkan\n"
    "  ree-run compare model.onnx --random-inputs 1 --device cuda \\\n"
    "      --operation-set reproducible --operation-set default --html drift.html\n"
    "\n"
    "exit status: 0 the same bytes, 1 they differ, 2 they cannot be compared (or wrong usage)\n";

// Options of a device, which may be given for both or for each.
static const char *const device_options[] = {"--device",  "--operation-set", "--threads",
                                             "--cpu-isa", "--form",          "--break-primitive"};
#define N_DEVICE_OPTIONS (sizeof device_options / sizeof *device_options)

struct options {
    const char *model, *tokenizer, *html, *fault;
    struct cli_device devices[2];
    unsigned n_given[N_DEVICE_OPTIONS];
    struct run_inputs inputs;
    struct prompt_arg prompt;
    size_t n_prompts;
    uint64_t max_new_tokens, chunk;
    bool ignore_eos, json, all;
};

// Everything that is opened.
struct job {
    const struct options *o;
    struct ree_device *devices[2];
    struct ree_generator *generators[2];
    struct ree_model *models[2];     // of no text
    struct ree_session *sessions[2]; // the generators' own, or of the models
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    int32_t *eos, *ids;
    size_t n_eos, n_ids;
    struct ree_compare *compare;
    struct compare_report report;
    bool has_suspects;
    struct ree_error err;
};

static bool device_option(struct cli *cli, struct options *o) {
    const char *argument = cli->argv[cli->at];
    size_t k = 0, n;
    for (; k < N_DEVICE_OPTIONS; k++) {
        n = strlen(device_options[k]);
        if (strncmp(argument, device_options[k], n) == 0 && (!argument[n] || argument[n] == '='))
            break;
    }
    if (k == N_DEVICE_OPTIONS || !cli_device_option(cli, &o->devices[1])) return false;
    // The first is of both until there is a second.
    struct cli_device *a = &o->devices[0];
    const struct cli_device *b = &o->devices[1];
    if (++o->n_given[k] > 2) cli_usage(cli, "%s is given at most twice", device_options[k]);
    if (o->n_given[k] > 1) return true;
    switch (k) {
    case 0: a->spec = b->spec; break;
    case 1: a->options.operation_set = b->options.operation_set; break;
    case 2: a->n_threads = b->n_threads; break;
    case 3: a->options.cpu_isa = b->options.cpu_isa; break;
    case 4: a->options.force_form = b->options.force_form; break;
    default: a->options.break_primitive = b->options.break_primitive;
    }
    return true;
}

static bool input_option(struct cli *cli, struct options *o) {
    const char *value = NULL;
    if (cli_option(cli, "--input", &value)) {
        if (value) o->inputs.args[o->inputs.n_args++] = value;
    } else if (cli_option(cli, "--dim", &value)) {
        if (value) run_inputs_add_dim(&o->inputs, cli, value);
    } else if (cli_option_number(cli, "--random-inputs", 0, UINT64_MAX, &o->inputs.seed)) {
        o->inputs.random = true;
    } else if (cli_option(cli, "--prompt-text", &value)) {
        o->prompt = (struct prompt_arg){PROMPT_TEXT, value};
        o->n_prompts++;
    } else if (cli_option(cli, "--prompt-ids", &value)) {
        o->prompt = (struct prompt_arg){PROMPT_IDS, value};
        o->n_prompts++;
    } else {
        return false;
    }
    return true;
}

static void parse(struct cli *cli, struct options *o) {
    o->max_new_tokens = 16;
    o->chunk = WATCH_CHUNK;
    while (cli_next(cli)) {
        if (cli_flag(cli, "--json"))
            o->json = true;
        else if (cli_flag(cli, "--all"))
            o->all = true;
        else if (cli_flag(cli, "--ignore-eos"))
            o->ignore_eos = true;
        else if (!input_option(cli, o) && !device_option(cli, o) &&
                 !cli_option(cli, "--tokenizer", &o->tokenizer) &&
                 !cli_option(cli, "--html", &o->html) &&
                 !cli_option(cli, "--inject-fault", &o->fault) &&
                 !cli_option_number(cli, "--max-new-tokens", 0, 1 << 20, &o->max_new_tokens) &&
                 !cli_option_number(cli, "--prefill-chunk", 1, 1 << 20, &o->chunk) &&
                 !cli_positional(cli, &o->model))
            cli_unknown(cli);
    }
    if (cli->failed) return;
    if (!o->model) cli_usage(cli, "no model is named");
    if (o->n_prompts > 1) cli_usage(cli, "one prompt is compared, and %zu are given", o->n_prompts);
    if (o->n_prompts && (o->inputs.n_args || o->inputs.random))
        cli_usage(cli, "a prompt and inputs exclude each other");
}

// Opening

static enum ree_status load_tokenizer(struct job *job) {
    const struct options *o = job->o;
    const char *path = o->tokenizer;
    if (!path) path = ree_generator_info(job->generators[0])->folder;
    enum ree_status status = ree_tokenizer_load(path, &job->tokenizer, &job->err);
    bool optional = !o->tokenizer && o->prompt.kind == PROMPT_IDS && status == REE_NOT_FOUND;
    if (status != REE_OK) job->tokenizer = NULL;
    return optional ? REE_OK : status;
}

static enum ree_status find_eos(struct job *job) {
    const struct ree_generator_info *info = ree_generator_info(job->generators[0]);
    const int32_t *ids = NULL;
    size_t n = job->tokenizer ? ree_tokenizer_eos(job->tokenizer, &ids) : 0;
    if (job->o->ignore_eos) return REE_OK;
    job->eos = malloc((info->n_eos + n + 1) * sizeof *job->eos);
    if (!job->eos) return ree_fail(&job->err, REE_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < info->n_eos; i++)
        job->eos[job->n_eos++] = info->eos[i];
    for (size_t i = 0; i < n; i++)
        job->eos[job->n_eos++] = ids[i];
    return REE_OK;
}

static enum ree_status open_sides(struct job *job) {
    const struct options *o = job->o;
    for (int k = 0; k < 2; k++) {
        REE_TRY(cli_device_open(&o->devices[k], &job->devices[k], &job->err));
        if (o->n_prompts) {
            struct ree_generator_options options = {.model.on_progress = cli_progress,
                                                    .prefill_chunk = (uint32_t)o->chunk,
                                                    .max_batch = 1,
                                                    .exact_lengths = true};
            REE_TRY(ree_generator_create(o->model, job->devices[k], &options, &job->generators[k],
                                         &job->err));
            job->sessions[k] = ree_generator_session(job->generators[k]);
        } else {
            REE_TRY(ree_session_create(job->models[k], job->devices[k], NULL, &job->sessions[k],
                                       &job->err));
        }
        // For the RepOps of a node, where it differs.
        ree_session_measure(job->sessions[k], true);
    }
    return REE_OK;
}

static const struct ree_model *model_of(const struct job *job) {
    return job->o->n_prompts ? job->generators[0]->model : job->models[0];
}

static enum ree_status observe(struct job *job) {
    const struct ree_roles *roles = job->o->n_prompts ? &job->generators[0]->roles : NULL;
    REE_TRY(ree_compare_create(model_of(job), roles ? roles->states : NULL,
                               roles ? roles->n_states : 0, &job->compare, &job->err));
    for (unsigned k = 0; k < 2; k++) {
        struct ree_observer observer = ree_compare_observer(job->compare, k);
        REE_TRY(ree_session_observe(job->sessions[k], &observer, &job->err));
    }
    uint64_t step;
    return job->o->fault
               ? watch_inject(job->o->fault, model_of(job), job->sessions[1], &step, &job->err)
               : REE_OK;
}

// Running

struct suspect_search {
    struct compare_report *report;
    unsigned side;
};

static void add_suspect(void *user, const struct ree_device_fact *fact) {
    struct suspect_search *search = user;
    struct compare_report *r = search->report;
    if (r->n_suspects == COMPARE_MAX_SUSPECTS) return;
    struct compare_suspect *s = &r->suspects[r->n_suspects++];
    s->side = search->side;
    snprintf(s->name, sizeof s->name, "%s", fact->name);
    snprintf(s->verdict, sizeof s->verdict, "%s", fact->value);
}

// While the first difference is that of the latest run.
static void on_step(void *user) {
    struct job *job = user;
    struct ree_compare_result result = ree_compare_result(job->compare);
    if (!result.first.found || job->has_suspects) return;
    job->has_suspects = true;
    const struct ree_node *node = model_of(job)->graph->nodes[result.first.node];
    uint32_t repops =
        ree_suspects_repops(job->sessions[0], node) | ree_suspects_repops(job->sessions[1], node);
    for (unsigned k = 0; k < 2; k++) {
        struct suspect_search search = {&job->report, k};
        ree_suspects_find(job->devices[k], repops, add_suspect, &search);
    }
}

static enum ree_status run_text(struct job *job) {
    struct ree_compare_text text = {
        .generators = {job->generators[0], job->generators[1]},
        .prompt = job->prompts.list[0].ids,
        .n_prompt = job->prompts.list[0].n,
        .max_new_tokens = job->o->max_new_tokens,
        .eos = job->eos,
        .n_eos = job->n_eos,
        .on_step = on_step,
        .user = job,
    };
    return ree_compare_text(&text, &job->ids, &job->n_ids, &job->err);
}

static enum ree_status run_inputs(struct job *job) {
    for (int k = 0; k < 2; k++) {
        size_t n = ree_model_n_outputs(job->models[k]);
        struct ree_tensor *outputs = calloc(n + 1, sizeof *outputs);
        if (!outputs) return ree_fail(&job->err, REE_NO_MEMORY, "out of memory");
        enum ree_status status = ree_session_run(job->sessions[k], job->o->inputs.tensors,
                                                 job->o->inputs.n_tensors, outputs, &job->err);
        for (size_t i = 0; i < n; i++)
            ree_tensor_finish(&outputs[i]);
        free(outputs);
        REE_TRY(status);
    }
    on_step(job);
    return REE_OK;
}

static int report(struct job *job) {
    const struct options *o = job->o;
    struct compare_report *r = &job->report;
    struct ree_strbuf text;
    r->model = o->model;
    r->graph = model_of(job)->graph;
    r->result = ree_compare_result(job->compare);
    r->is_text = o->n_prompts > 0;
    r->ids = job->ids;
    r->n_ids = job->n_ids;
    for (int k = 0; k < 2; k++) {
        r->devices[k] = ree_device_name(job->devices[k]);
        r->sets[k] = o->devices[k].options.operation_set;
    }
    ree_strbuf_init(&text);
    if (o->html) {
        struct ree_html_compare page = {
            o->model, {r->devices[0], r->devices[1]}, r->graph, &r->result};
        ree_html_compare(&page, &text);
        enum ree_status status = text.failed
                                     ? ree_fail(&job->err, REE_NO_MEMORY, "out of memory")
                                     : ree_file_write(o->html, text.data, text.size, &job->err);
        ree_strbuf_finish(&text);
        if (status != REE_OK) {
            cli_fail(&job->err);
            return CLI_CANNOT;
        }
    }
    ree_strbuf_init(&text);
    if (o->json)
        compare_report_json(r, &text);
    else
        compare_report_text(r, o->all, &text);
    if (cli_print(&text)) return CLI_CANNOT;
    return r->result.first.found ? CLI_DIFFERS : 0;
}

static enum ree_status load_models(struct job *job) {
    struct ree_model_options options = {.on_progress = cli_progress};
    for (int k = 0; k < 2; k++)
        REE_TRY(ree_model_load(job->o->model, &options, &job->models[k], &job->err));
    return REE_OK;
}

static int work(struct job *job, struct options *o) {
    enum ree_status status = REE_OK;
    if (!o->n_prompts) {
        // Inputs before the devices: a missing one should be said at once.
        status = load_models(job);
        if (status == REE_OK && run_inputs_load(&o->inputs, job->models[0])) return CLI_CANNOT;
    }
    if (status == REE_OK) status = open_sides(job);
    if (status == REE_OK && o->n_prompts) {
        status = load_tokenizer(job);
        if (status == REE_OK &&
            prompts_load(&job->prompts, &o->prompt, 1, job->tokenizer, NULL, false))
            return CLI_CANNOT;
        if (status == REE_OK) status = find_eos(job);
    }
    if (status == REE_OK) status = observe(job);
    if (status == REE_OK) status = o->n_prompts ? run_text(job) : run_inputs(job);
    cli_progress_end();
    if (status == REE_OK) return report(job);
    cli_fail(&job->err);
    return CLI_CANNOT;
}

static void finish(struct job *job) {
    for (int k = 0; k < 2; k++) {
        if (!job->generators[k]) ree_session_destroy(job->sessions[k]);
        ree_generator_destroy(job->generators[k]);
        ree_device_destroy(job->devices[k]);
    }
    ree_compare_destroy(job->compare); // before the model that it knows
    for (int k = 0; k < 2; k++)
        ree_model_destroy(job->models[k]);
    prompts_finish(&job->prompts);
    ree_tokenizer_destroy(job->tokenizer);
    free(job->eos);
    free(job->ids);
}

int ree_run_compare(int argc, char **argv) {
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
    int code = CLI_CANNOT;
    if (!o.inputs.args || !o.inputs.dims) {
        cli_error("out of memory");
    } else {
        struct job job = {.o = &o};
        parse(&cli, &o);
        code = cli.failed ? CLI_USAGE : work(&job, &o);
        finish(&job);
    }
    run_inputs_finish(&o.inputs);
    return code;
}
