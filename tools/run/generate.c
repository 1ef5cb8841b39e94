// ree-run generate, or ree-run MODEL --prompt-...: continues texts with a language model.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate_job.h"
#include "option_table.h"
#include "start.h"

#define CLI_INTERRUPTED 130 // as in shells: 128 + SIGINT

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

static bool is_interrupted(void *user) {
    const struct job *job = user;
    return interrupted != 0 || job->failed;
}

// Shows progress of loading and of long prompts, but not of each token.
static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

static bool needs_tokenizer(const struct job *job) {
    const struct generate_options *o = job->o;
    for (size_t i = 0; i < o->n_prompts; i++)
        if (o->prompts[i].kind != PROMPT_IDS && o->prompts[i].kind != PROMPT_FILE) return true;
    return o->n_stops > 0 || (job->request && ree_request_info(job->request)->n_stops > 0);
}

// Loads the named tokenizer, or the one next to the model. It may be missing if all prompts are
// ids.
static int load_tokenizer(struct job *job) {
    struct ree_error err;
    const char *path = job->o->tokenizer;
    if (!path) path = ree_generator_info(job->generator)->folder;
    enum ree_status status = ree_tokenizer_load(path, &job->tokenizer, &err);
    if (status == REE_OK) return 0;
    job->tokenizer = NULL;
    bool optional = !job->o->tokenizer && status == REE_NOT_FOUND && !needs_tokenizer(job);
    return optional ? 0 : cli_fail(&err);
}

static bool keep_logprobs(struct job *job, const struct ree_token *token) {
    size_t i = token->sequence, n = job->n_logprobs[i], most = job->o->n_logprobs;
    struct token_logprob *list = realloc(job->logprobs[i], (n + 1) * sizeof *list);
    if (!list) return false;
    job->logprobs[i] = list;
    list[n] = (struct token_logprob){token->logprob, malloc(most * sizeof *list->top)};
    if (!list[n].top) return false;
    memcpy(list[n].top, token->top, most * sizeof *list->top);
    job->n_logprobs[i]++;
    return true;
}

static void on_text(void *user, size_t sequence, const char *text, size_t nbytes) {
    struct job *job = user;
    (void)sequence;
    if (job->prints) writer_print(&job->writer, text, nbytes);
    job->failed = job->failed || job->writer.failed;
}

// Prints a token as its id, for a model without a tokenizer.
static void print_id(struct job *job, int32_t id) {
    char text[16];
    int n = snprintf(text, sizeof text, "%s%d", job->n_ids++ ? " " : "", id);
    cli_write(text, (size_t)n);
}

static bool on_token(void *user, const struct ree_token *token) {
    struct job *job = user;
    if (job->o->n_logprobs && !keep_logprobs(job, token)) {
        cli_error("out of memory");
        job->failed = true;
        return false;
    }
    if (job->prints && !job->tokenizer) print_id(job, token->id);
    return !job->failed;
}

static int create_completion(struct job *job) {
    struct generate_options *o = job->o;
    struct ree_error err;
    struct ree_completion_options options = {.size = sizeof options,
                                             .n_logprobs = (uint32_t)o->n_logprobs,
                                             .on_text = on_text,
                                             .on_token = on_token,
                                             .is_interrupted = is_interrupted,
                                             .user = job};
    if (!job->request) {
        options.sampling = &o->sampling;
        options.max_new_tokens = o->max_new_tokens;
        options.n_stops = o->n_stops;
        options.stops = o->stops;
        options.ignores_eos = o->ignore_eos;
    }
    enum ree_status status =
        job->request ? ree_completion_create_requested(job->generator, job->tokenizer, job->request,
                                                       &options, &job->completion, &err)
                     : ree_completion_create(job->generator, job->tokenizer, job->prompts.list,
                                             job->prompts.n, &options, &job->completion, &err);
    if (status != REE_OK) return cli_fail(&err);
    job->n = ree_completion_n_prompts(job->completion);
    return 0;
}

// Prepares the results. If the text is printed while it is generated, prints the prompt first,
// unless it is a chat or --no-echo is given.
static int begin_output(struct job *job) {
    bool escapes = cli_must_escape(job->o->raw_output);
    job->logprobs = calloc(job->n, sizeof(struct token_logprob *));
    job->n_logprobs = calloc(job->n, sizeof *job->n_logprobs);
    if (!job->logprobs || !job->n_logprobs) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    writer_init(&job->writer, escapes);
    job->prints = job->n == 1 && !job->o->json;
    if (!job->prints || job->o->no_echo || prompts_is_chat(&job->prompts, 0)) return 0;
    size_t n;
    struct strbuf text;
    const char *prompt = ree_completion_prompt_text(job->completion, 0, &n);
    strbuf_init(&text);
    writer_append(escapes, prompt, n, &text);
    return cli_print(&text);
}

static int report(struct job *job) {
    struct ree_session_stats session = {.size = sizeof session};
    struct strbuf text;
    ree_generator_stats(job->generator, &session, NULL);
    struct generate_report r = {
        .n = job->n,
        .completion = job->completion,
        .has_text = job->tokenizer != NULL,
        .escapes = job->writer.escapes,
        .prints_texts = job->n > 1,
        .n_logprobs = (uint32_t)job->o->n_logprobs,
        .logprobs = job->logprobs,
        .stats = ree_completion_stats(job->completion),
        .session = job->o->stats ? &session : NULL,
        .pipeline = ree_generator_pipeline(job->generator),
        .device = cli_stages_device(&job->o->stages),
        .model = ree_generator_info(job->generator)->model_path,
        .operation_set = job->o->device.options.operation_set,
        .receipt_hash = job->receipt_hash,
        .trace = job->has_trace ? &job->traced : NULL,
        .ranks = job->o->ranks.n && job->o->stats ? &job->o->ranks : NULL,
    };
    strbuf_init(&text);
    if (job->o->json) {
        generate_report_json(&r, &text);
    } else {
        if (r.n == 1) strbuf_printf(&text, "\n\n");
        generate_report_text(&r, &text);
    }
    return cli_print(&text);
}

static int prepare_watch(struct job *job) {
    if (trace_options_any(&job->o->tracing) && job->n > 1) {
        cli_error("--trace, --dump-tensors and --inject-fault require one prompt, not %zu", job->n);
        return CLI_USAGE;
    }
    struct traced_run run = {.generator = job->generator};
    return tracing_begin(&job->tracing, &job->o->tracing, &run);
}

// Performs the handshake with the other ranks, if there are any.
static int join(struct job *job) {
    const struct generate_options *o = job->o;
    struct strbuf agreed;
    strbuf_init(&agreed);
    strbuf_printf(&agreed, "--operation-set\t%s\n",
                  ree_operation_set_name(o->device.options.operation_set));
    strbuf_printf(&agreed, "--no-fold (0 or 1)\t%d\n", o->no_fold);
    strbuf_printf(&agreed, "exact lengths (0 or 1)\t%d\n", trace_options_any(&o->tracing));
    strbuf_printf(&agreed, "sequences of different lengths together (0 or 1)\t%d\n",
                  ree_generator_info(job->generator)->mixes_lengths);
    strbuf_printf(&agreed, "--micro-batches\t%u\n",
                  o->n_cache_slots ? (unsigned)o->n_cache_slots : 1);
    int code = 0;
    if (agreed.failed) {
        cli_error("out of memory");
        code = CLI_FAILED;
    }
    if (!code) code = cli_ranks_join(&job->o->ranks, job->generator, agreed.data);
    strbuf_finish(&agreed);
    return code;
}

static int generate(struct job *job) {
    struct ree_error err;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    int code = generate_prepare_receipt(job);
    if (!code) code = generate_attach_checkpoint(job);
    if (!code) code = prepare_watch(job);
    if (!code) code = join(job);
    if (!code) code = begin_output(job);
    if (code) return code;
    enum ree_status status = ree_completion_run(job->completion, &err);
    writer_end(&job->writer);
    if (status != REE_OK) {
        // Start a new line after the text printed so far.
        if (job->prints) cli_write("\n", 1);
        return cli_fail(&err);
    }
    if (job->failed || job->writer.failed) return CLI_FAILED;
    budget_results();
    // Writes the files before the report, which is printed only if they were written.
    code = cli_ranks_end(&job->o->ranks);
    if (!code) code = tracing_end(&job->tracing, &job->traced, &job->has_trace);
    if (!code) code = generate_save_receipt(job);
    if (!code) code = report(job);
    // If a checkpoint could not be written, the message has already been printed.
    if (!code && job->checkpoint && ree_checkpoint_close(job->checkpoint, NULL) != REE_OK)
        code = CLI_FAILED;
    return code ? code : interrupted ? CLI_INTERRUPTED : 0;
}

static int open_generator(struct job *job) {
    struct generate_options *o = job->o;
    struct ree_error err;
    struct ree_model_options model = {
        .size = sizeof model, .no_fold = o->no_fold, .progress = cli_reports};
    struct ree_session_options session = {
        .size = sizeof session, .no_fuse = o->no_fuse, .progress = {.report = progress}};
    struct ree_rank rank;
    struct ree_generator_options options = {
        .size = sizeof options,
        .model = &model,
        .session = &session,
        .prefill_chunk = (uint32_t)o->chunk,
        .max_batch = (uint32_t)o->batch,
        .n_cache_slots = (uint32_t)o->n_cache_slots,
        .all_logits = o->logits_hash,
        .exact_lengths = trace_options_any(&o->tracing),
    };
    cli_quantize_model(&o->quantize, &model);
    if (!o->device.n_threads) o->device.n_threads = cli_ranks_threads(&o->ranks);
    if (cli_stages_open(&o->stages, &o->device, &err) != REE_OK) return cli_fail(&err);
    cli_stages_generator(&o->stages, &options);
    if (cli_ranks_share(&o->ranks, &rank, &model.progress)) {
        options.rank = &rank;
        session.progress = model.progress;
    }
    if (ree_generator_create(o->model, o->stages.devices[0], &options, &job->generator, &err) !=
        REE_OK)
        return cli_fail(&err);
    cli_print_notes(ree_generator_model(job->generator));
    return 0;
}

// A rank other than 0 only runs its stages.
static int serve(struct job *job) {
    int code = open_generator(job);
    if (!code) code = join(job);
    return code ? code : cli_ranks_serve(&job->o->ranks);
}

static int load_request(struct job *job) {
    struct ree_error err;
    if (!job->o->request) return 0;
    if (ree_request_load(job->o->request, &job->request, &err) == REE_OK) return 0;
    return cli_fail(&err);
}

static int prepare(struct job *job) {
    struct generate_options *o = job->o;
    int code = cli_receipt_prepare(&o->receipt);
    if (!code) code = load_request(job);
    if (!code) code = generate_open_checkpoint(job);
    if (!code) code = open_generator(job);
    if (code) return code;
    code = load_tokenizer(job);
    if (!code && !o->request)
        code = prompts_load(&job->prompts, o->prompts, o->n_prompts, job->tokenizer, o->chat_family,
                            o->raw);
    if (!code) code = create_completion(job);
    return code;
}

static void finish(struct job *job) {
    for (size_t i = 0; i < job->n; i++) {
        for (size_t k = 0; job->n_logprobs && k < job->n_logprobs[i]; k++)
            free(job->logprobs[i][k].top);
        if (job->logprobs) free(job->logprobs[i]);
    }
    free(job->logprobs);
    free(job->n_logprobs);
    writer_finish(&job->writer);
    tracing_finish(&job->tracing);
    ree_completion_destroy(job->completion);
    ree_checkpoint_destroy(job->checkpoint);
    prompts_finish(&job->prompts);
    ree_request_destroy(job->request);
    ree_tokenizer_destroy(job->tokenizer);
    ree_generator_destroy(job->generator);
    cli_stages_finish(&job->o->stages);
}

int ree_run_generate(int argc, char **argv) {
    struct generate_options o;
    struct job job = {.o = &o};
    if (cli_wants_help(argc, argv)) return generate_options_help();
    int code = CLI_USAGE;
    if (generate_options_parse(&o, argc, argv)) {
        const char *ranks = "several processes";
        code = cli_ranks_start(&o.ranks);
        if (!code)
            code = cli_start(&(struct cli_start){.uses = sandbox_uses(o.device.spec),
                                                 .no_sandbox = o.ranks.n ? ranks : NULL});
        if (!code && o.ranks.rank > 0) {
            code = serve(&job);
        } else {
            if (!code) code = prepare(&job);
            if (!code) code = generate(&job);
        }
        code = cli_ranks_finish(&o.ranks, code);
        finish(&job);
    } else if (!o.prompts || !o.stops) {
        code = CLI_FAILED; // out of memory
    }
    generate_options_finish(&o);
    return code;
}
