// ree-run perplexity: how well a model predicts a text, and what a precision costs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "commands.h"
#include "option_groups.h"
#include "perplexity_report.h"
#include "read_text.h"
#include "stage_options.h"
#include "start.h"
#include "status.h"

struct options {
    struct perplexity_side sides[2]; // MODEL, --against
    const char *text, *tokenizer, *score;
    uint64_t context, stride, windows, chunk;
    struct cli_device device;
    struct cli_stages stages;
    bool json, no_fuse, no_fold;
};

struct job {
    struct options *o;
    struct ree_tokenizer *tokenizer;
    char *text;
    size_t n_text;
    int32_t *ids;
    size_t n_ids;
    struct ree_perplexity results;
    struct ree_error err;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run perplexity MODEL --text FILE [--against MODEL2] [options]\n"
  "\n"
  "Measures how well a language model predicts a text. The perplexity is e to the mean negative\n"
  "log probability of the text's tokens: lower is better. With --against, also measures how far\n"
  "MODEL's predictions are from those of MODEL2, the reference: for choosing a precision.\n"
  "MODEL and MODEL2 are as for 'ree-run generate': a checkpoint's folder or an ONNX file.\n"
  "\n"
  "  divergence   Kullback-Leibler divergence of MODEL's next-token distribution from MODEL2's,\n"
  "               sum of p2 * ln(p2 / p) over the vocabulary, in nats: 0 if they are equal.\n"
  "               Mean, maximum, and quantiles over the scored tokens\n"
  "  same most likely token\n"
  "               the share of scored tokens for which both models find the same token most\n"
  "               likely\n"
  "  +/-          standard errors, as if tokens were independent of each other\n"
  "  scores       SHA-256 of the log probabilities and divergences of all scored tokens\n"
  "\n"
  "All figures but the speed have the same bits on every device (NUMERICS.md, \"Perplexity\").\n"
  "\n"
  "what is measured\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(sides[0].path), .path = CLI_READS_BESIDE},
    {.name = "--text", .value = "FILE", .kind = ROW_STRING, .at = AT(text), .path = CLI_READS,
     .help = "the text (-: standard input). It is encoded once, as a whole. Special tokens that "
             "are written in it are ordinary text"},
    {.name = "--against", .value = "MODEL2", .kind = ROW_STRING, .at = AT(sides[1].path),
     .path = CLI_READS_BESIDE,
     .help = "compare with this model, whose vocabulary must be the same. It may be the folder of "
             "MODEL, with other options for its weights"},
    {.name = "--tokenizer", .value = "PATH", .kind = ROW_STRING, .at = AT(tokenizer),
     .path = CLI_READS_BESIDE,
     .help = "tokenizer.json, a folder that contains one, or a *.tiktoken file (default: that in "
             "the folder of MODEL, or else of MODEL2)"},

    {.kind = ROW_TEXT, .help =
  "\n"
  "windows (the text is divided into windows of N tokens; a model sees only the tokens before\n"
  "the scored one in its window)\n"},
    {.name = "--context", .value = "N", .kind = ROW_NUMBER, .at = AT(context), .min = 2,
     .max = INT32_MAX,
     .help = "tokens in a window (default: 512, or the context of the models if it is shorter)"},
    {.name = "--score", .value = "WHICH", .kind = ROW_CHOICE, .at = AT(score),
     .choices = CLI_CHOICES("half", "all"),
     .help = "half (default): in each window the tokens with index N/2 + 1 to N - 1, counted from "
             "0. Windows do not overlap, an incomplete last window is left out, and a text that "
             "is shorter than N is one window. If the tokenizer puts a BOS token before texts, "
             "it replaces the first token of each window. These are the rules of llama.cpp's "
             "perplexity tool. all: every token but the first of the window, also in an "
             "incomplete last window; a BOS token is only before the text. This is what Hugging "
             "Face's documentation computes"},
    {.name = "--stride", .value = "N", .kind = ROW_NUMBER, .at = AT(stride), .min = 1,
     .max = INT32_MAX,
     .help = "with --score all: a window begins every N tokens and scores the tokens that no "
             "earlier window had, with at least CONTEXT - N tokens before them (default: the "
             "context, so that windows do not overlap). Small strides are slow"},
    {.name = "--windows", .value = "N", .kind = ROW_NUMBER, .at = AT(windows), .min = 1,
     .max = INT32_MAX, .help = "measure only the first N windows"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object, with all digits"},

    {.kind = ROW_TEXT, .help = "\nweights\n"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(sides[0].quantize), .help =
  "  --quantize BITS, --block N, --quantize-table BITS\n"
  "                       quantise the weights of MODEL, a checkpoint's folder, in memory, as\n"
  "                       'ree-run export' with these options\n"
  "  --activations TYPE   float32, float16, bfloat16 or int8, of MODEL: see 'ree-run help export'\n"},
    {.name = "--against-quantize", .value = "BITS", .kind = ROW_CHOICE_OF_NUMBERS,
     .at = AT(sides[1].quantize.bits), .choices = CLI_CHOICES("4", "8"),
     .help = "the same for MODEL2. Without it, MODEL2 keeps the precision of its files"},
    {.name = "--against-block", .value = "N", .kind = ROW_CHOICE_OF_NUMBERS,
     .at = AT(sides[1].quantize.block), .choices = CLI_CHOICES("16", "32", "64", "128", "256"),
     .help = "numbers per scale for MODEL2"},
    {.name = "--against-quantize-table", .value = "BITS", .kind = ROW_CHOICE,
     .at = AT(sides[1].quantize.table), .choices = CLI_CHOICES("4", "8", "keep"),
     .help = "bits of MODEL2's embedding table, if it is also the head"},
    {.name = "--against-activations", .value = "TYPE", .kind = ROW_CHOICE,
     .at = AT(sides[1].quantize.activations), .choices = CLI_CHOICES("float32", "float16", "bfloat16", "int8"),
     .help = "type of MODEL2's activations"},

    {.kind = ROW_TEXT, .help =
  "\ndevices and execution (the bits do not depend on these options)\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device), .help = CLI_DEVICE_HELP},
    {.name = "--no-fuse", .kind = ROW_FLAG, .at = AT(no_fuse)},
    {.name = "--no-fold", .kind = ROW_FLAG, .at = AT(no_fold)},
    {.kind = ROW_GROUP, .group = &cli_stages_group, .at = AT(stages)},
    {.name = "--prefill-chunk", .value = "N", .kind = ROW_NUMBER,
     .at = AT(chunk), .min = 1, .max = REE_MAX_PREFILL_CHUNK,
     .help = "maximum number of tokens in one run (default 512)"},

    {.kind = ROW_TEXT, .help =
  "\n"
  "promise\n"
  "  --operation-set SET  reproducible (the default), deterministic or default: see\n"
  "                       'ree-run help run'\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\nfor tests of ree itself\n" CLI_DEVICE_TEST_HELP
  "\n"
  "examples\n"
  "  ree-run perplexity ./Qwen2.5-0.5B --text wiki.test.raw\n"
  "  ree-run perplexity ./Qwen2.5-0.5B --quantize 4 --against ./Qwen2.5-0.5B \\\n"
  "      --text wiki.test.raw --windows 40\n"
  "  ree-run perplexity model-q8.onnx --against model.onnx --text book.txt --score all --json\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_perplexity_options = CLI_OPTION_TABLE(rows);

static void check(struct cli *cli, struct options *o) {
    const struct cli_quantize *q = &o->sides[1].quantize;
    if (!o->sides[0].path) cli_usage(cli, "no model given");
    if (!o->text) cli_usage(cli, "no text given: use --text");
    cli_quantize_check(cli, &o->sides[0].quantize);
    if (q->block && !q->bits) cli_usage(cli, "--against-block requires --against-quantize");
    if (q->table && !q->bits)
        cli_usage(cli, "--against-quantize-table requires --against-quantize");
    if (q->activations && !q->bits && strcmp(q->activations, "int8") == 0)
        cli_usage(cli, "--against-activations int8 requires --against-quantize");
    if (q->bits && !o->sides[1].path) cli_usage(cli, "--against-quantize requires --against");
    if (q->activations && !o->sides[1].path)
        cli_usage(cli, "--against-activations requires --against");
    if (o->stride && (!o->score || strcmp(o->score, "all") != 0))
        cli_usage(cli, "--stride requires --score all");
    if (o->stride && o->context && o->stride > o->context)
        cli_usage(cli, "--stride %llu is longer than --context %llu", (unsigned long long)o->stride,
                  (unsigned long long)o->context);
    cli_stages_check(cli, &o->stages, &o->device);
}

// Shows progress of loading, but not of each run: the measurement reports its own progress.
static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

static enum ree_status open_model(struct job *job, struct perplexity_side *side) {
    const struct options *o = job->o;
    struct ree_model_options model = {
        .size = sizeof model, .no_fold = o->no_fold, .progress = cli_reports};
    const struct ree_session_options session = {
        .size = sizeof session, .no_fuse = o->no_fuse, .progress = {.report = progress}};
    struct ree_generator_options options = {.size = sizeof options,
                                            .model = &model,
                                            .session = &session,
                                            .prefill_chunk = (uint32_t)o->chunk,
                                            .max_batch = 1};
    cli_quantize_model(&side->quantize, &model);
    cli_stages_generator(&o->stages, &options);
    TRY(ree_generator_create(side->path, o->stages.devices[0], &options, &side->generator,
                             &job->err));
    cli_print_notes(ree_generator_model(side->generator));
    return REE_OK;
}

static bool has_against(const struct job *job) {
    return job->o->sides[1].generator != NULL;
}

// Fails if the tokenizers in two folders differ. Then it would not be clear what the text's tokens
// are.
static enum ree_status check_tokenizers(struct job *job, const char *folder, const char *other) {
    struct ree_tokenizer *tokenizer;
    char own[65], hex[65];
    enum ree_status status = ree_tokenizer_load(other, &tokenizer, &job->err);
    if (status == REE_NOT_FOUND) return REE_OK;
    if (status != REE_OK) return status;
    ree_tokenizer_sha256(job->tokenizer, own);
    ree_tokenizer_sha256(tokenizer, hex);
    ree_tokenizer_destroy(tokenizer);
    if (strcmp(own, hex) == 0) return REE_OK;
    return set_error(&job->err, REE_INVALID,
                     "the tokenizers in %s and %s differ; if the models have the same vocabulary, "
                     "choose one with --tokenizer",
                     folder, other);
}

// Loads the named tokenizer, or that in the folder of a model.
static enum ree_status load_tokenizer(struct job *job) {
    const struct options *o = job->o;
    if (o->tokenizer) return ree_tokenizer_load(o->tokenizer, &job->tokenizer, &job->err);
    const char *folder = ree_generator_info(o->sides[0].generator)->folder, *other = NULL;
    if (has_against(job)) other = ree_generator_info(o->sides[1].generator)->folder;
    enum ree_status status = ree_tokenizer_load(folder, &job->tokenizer, &job->err);
    if (status == REE_OK && other) return check_tokenizers(job, folder, other);
    if (status != REE_NOT_FOUND || !other) return status;
    struct ree_error err;
    if (ree_tokenizer_load(other, &job->tokenizer, &err) == REE_OK) return REE_OK;
    if (err.status != REE_NOT_FOUND) job->err = err;
    return job->err.status;
}

static enum ree_status encode(struct job *job) {
    const char *path = job->o->text;
    TRY(ree_tokenizer_encode(job->tokenizer, job->text, job->n_text, REE_ADD_SPECIAL, &job->ids,
                             &job->n_ids, &job->err));
    if (job->n_ids >= 2) return REE_OK;
    return set_error(&job->err, REE_INVALID,
                     "%s: the text has %zu token%s, but at least 2 are required", path, job->n_ids,
                     job->n_ids == 1 ? "" : "s");
}

static bool has_bos(const struct job *job) {
    return job->ids[0] == ree_tokenizer_bos(job->tokenizer);
}

static enum ree_status measure(struct job *job) {
    const struct options *o = job->o;
    const int32_t bos = job->ids[0];
    bool scores_all = o->score && strcmp(o->score, "all") == 0;
    const struct ree_perplexity_options options = {
        .size = sizeof options,
        .against = o->sides[1].generator,
        .context = o->context,
        .scored = scores_all ? REE_SCORED_ALL : REE_SCORED_SECOND_HALF,
        .stride = o->stride,
        .window_bos = has_bos(job) && !scores_all ? &bos : NULL,
        .max_windows = o->windows,
        .progress = cli_reports,
    };
    job->results.size = sizeof job->results;
    return ree_perplexity_measure(o->sides[0].generator, job->ids, job->n_ids, &options,
                                  &job->results, &job->err);
}

static void print_doubts(const struct job *job) {
    const char *why[2] = {job->results.why_not_causal, job->results.against_why_not_causal};
    for (int k = 0; k < 2; k++) {
        if (!why[k][0]) continue;
        struct strbuf text;
        strbuf_init(&text);
        strbuf_printf(&text, "ree-run: note: it is not proved that ");
        cli_append_name(&text, job->o->sides[k].path);
        strbuf_printf(&text, " predicts tokens from earlier tokens only: ");
        cli_append_name(&text, why[k]);
        strbuf_printf(&text, "\n");
        if (!text.failed) fputs(text.data, stderr);
        strbuf_finish(&text);
    }
}

static int report(struct job *job) {
    const struct options *o = job->o;
    struct strbuf text;
    struct perplexity_report r = {
        .model = &o->sides[0],
        .against = has_against(job) ? &o->sides[1] : NULL,
        .text = o->text,
        .n_tokens = job->n_ids,
        .has_bos = has_bos(job),
        .scored =
            o->score && strcmp(o->score, "all") == 0 ? REE_SCORED_ALL : REE_SCORED_SECOND_HALF,
        .stride = o->stride,
        .device = cli_stages_device(&o->stages),
        .operation_set = o->device.options.operation_set,
        .results = &job->results,
    };
    budget_results();
    print_doubts(job);
    ree_tokenizer_sha256(job->tokenizer, r.tokenizer_sha256);
    strbuf_init(&text);
    if (o->json)
        perplexity_report_json(&r, &text);
    else
        perplexity_report_text(&r, &text);
    return cli_print(&text);
}

static enum ree_status work(struct job *job) {
    struct options *o = job->o;
    if (!job->n_text) return set_error(&job->err, REE_INVALID, "%s: the text is empty", o->text);
    TRY(cli_stages_open(&o->stages, &o->device, &job->err));
    for (int k = 0; k < 2; k++)
        if (o->sides[k].path) TRY(open_model(job, &o->sides[k]));
    TRY(load_tokenizer(job));
    TRY(encode(job));
    return measure(job);
}

static void finish(struct job *job) {
    free(job->text);
    free(job->ids);
    ree_tokenizer_destroy(job->tokenizer);
    for (int k = 0; k < 2; k++)
        ree_generator_destroy(job->o->sides[k].generator);
    cli_stages_finish(&job->o->stages);
}

int ree_run_perplexity(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    struct job job = {.o = &o};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_perplexity_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_perplexity_options, &o);
    if (!cli.failed) check(&cli, &o);
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.uses = sandbox_uses(o.device.spec)});
    if (code) return code;
    // The text is read first, so that a wrong path is reported before models are loaded.
    job.text = cli_read_text(o.text, &job.n_text);
    if (job.text) {
        enum ree_status status = work(&job);
        cli_progress_end();
        code = status == REE_OK ? report(&job) : cli_fail(&job.err);
    } else {
        code = CLI_FAILED;
    }
    finish(&job);
    return code;
}
