// ree-run MODEL --prompt-...: text generation.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate/eos.h"
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
    (void)user;
    return interrupted != 0;
}

// Shows progress of loading and of long prompts, but not of each token.
static bool progress(void *user, const char *what, uint64_t done, uint64_t total) {
    return strcmp(what, "running") == 0 || cli_progress(user, what, done, total);
}

static bool needs_tokenizer(const struct generate_options *o) {
    for (size_t i = 0; i < o->n_prompts; i++)
        if (o->prompts[i].kind != PROMPT_IDS && o->prompts[i].kind != PROMPT_FILE) return true;
    return o->n_stops > 0;
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
    bool optional = !job->o->tokenizer && status == REE_NOT_FOUND && !needs_tokenizer(job->o);
    return optional ? 0 : cli_fail(&err);
}

static int find_eos(struct job *job) {
    const struct ree_generator_info *info = ree_generator_info(job->generator);
    if (job->o->ignore_eos || ree_eos_ids(info, job->tokenizer, &job->eos, &job->n_eos)) return 0;
    cli_error("out of memory");
    return CLI_FAILED;
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

static bool on_token(void *user, const struct ree_token *token) {
    struct job *job = user;
    struct writer *w = &job->writers[token->sequence];
    if (job->o->n_logprobs && !keep_logprobs(job, token)) {
        cli_error("out of memory");
        job->failed = true;
        return false;
    }
    bool goes_on = writer_push(w, token->id);
    job->failed = job->failed || w->failed;
    return goes_on;
}

static int begin_writers(struct job *job) {
    size_t n = job->prompts.n;
    job->writers = calloc(n, sizeof *job->writers);
    job->generations = calloc(n, sizeof *job->generations);
    job->logprobs = calloc(n, sizeof(struct token_logprob *));
    job->n_logprobs = calloc(n, sizeof *job->n_logprobs);
    if (!job->writers || !job->generations || !job->logprobs || !job->n_logprobs) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < n; i++) {
        struct writer *w = &job->writers[i];
        *w = (struct writer){.tokenizer = job->tokenizer,
                             .stops = job->o->stops,
                             .n_stops = job->o->n_stops,
                             .prints = n == 1 && !job->o->json,
                             .escapes = cli_must_escape(job->o->raw_output)};
        if (!writer_begin(w, &job->prompts.list[i])) return CLI_FAILED;
        bool echo = w->prints && !job->o->no_echo && !job->prompts.is_chat[i];
        if (echo) {
            struct strbuf text;
            strbuf_init(&text);
            writer_append(w, writer_prompt(w), &text);
            int code = cli_print(&text);
            if (code) return code;
        }
    }
    return 0;
}

static int report(struct job *job, const struct ree_generate_stats *stats) {
    struct ree_session_stats session = {.size = sizeof session};
    struct ree_error err;
    struct strbuf text;
    if (ree_generator_stats(job->generator, &session, &err) != REE_OK) return cli_fail(&err);
    struct generate_report r = {
        .n = job->prompts.n,
        .generations = job->generations,
        .writers = job->writers,
        .has_text = job->tokenizer != NULL,
        .prints_texts = job->prompts.n > 1,
        .n_logprobs = (uint32_t)job->o->n_logprobs,
        .logprobs = job->logprobs,
        .stats = stats,
        .session = job->o->stats ? &session : NULL,
        .pipeline = job->generator->pipeline,
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
    if (trace_options_any(&job->o->tracing) && job->prompts.n > 1) {
        cli_error("--trace, --dump-tensors and --inject-fault require one prompt, not %zu",
                  job->prompts.n);
        return CLI_USAGE;
    }
    bool has_hashes = job->o->receipt.path != NULL;
    struct traced_run run = {.generator = job->generator,
                             .graph_sha256 = has_hashes ? job->hashes.graph : NULL,
                             .weights_sha256 = has_hashes ? job->hashes.weights : NULL};
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
    strbuf_printf(&agreed, "--micro-batches\t%u\n", job->generator->options.n_cache_slots);
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
    struct ree_generate_stats stats = {.size = sizeof stats};
    struct ree_generate_options options = {.size = sizeof options,
                                           .sampling = job->o->sampling,
                                           .max_new_tokens = job->o->max_new_tokens,
                                           .eos = job->eos,
                                           .n_eos = job->n_eos,
                                           .n_logprobs = (uint32_t)job->o->n_logprobs,
                                           .on_token = on_token,
                                           .is_interrupted = is_interrupted,
                                           .user = job};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    int code = generate_prepare_receipt(job, &options);
    if (!code) code = generate_prepare_checkpoint(job, &options);
    if (!code) code = prepare_watch(job);
    if (!code) code = join(job);
    if (!code) code = begin_writers(job);
    if (!code) code = generate_replay(job);
    if (code) return code;
    enum ree_status status = ree_generate(job->generator, job->prompts.list, job->prompts.n,
                                          &options, job->generations, &stats, &err);
    for (size_t i = 0; i < job->prompts.n; i++)
        writer_end(&job->writers[i]);
    if (status != REE_OK) {
        // Start a new line after the text printed so far.
        if (job->writers[0].prints) cli_write("\n", 1);
        return cli_fail(&err);
    }
    if (job->failed) return CLI_FAILED;
    budget_results();
    // Files first: the printed report is then true of what was written.
    code = cli_ranks_end(&job->o->ranks);
    if (!code) code = tracing_end(&job->tracing, &job->traced, &job->has_trace);
    if (!code) code = generate_save_receipt(job, &options, &stats);
    if (!code) code = report(job, &stats);
    if (!code && job->checkpoint_failed) code = CLI_FAILED;
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
    cli_print_notes(job->generator->model);
    return 0;
}

// A rank other than 0 only runs its stages.
static int serve(struct job *job) {
    int code = open_generator(job);
    if (!code) code = join(job);
    return code ? code : cli_ranks_serve(&job->o->ranks);
}

// Takes prompt and parameters from a request instead of options.
static int take_request(struct job *job) {
    struct generate_options *o = job->o;
    struct ree_error err;
    if (!o->request) return 0;
    if (ree_request_load(o->request, &job->request, &err) != REE_OK) return cli_fail(&err);
    const struct ree_request *r = &job->request;
    const char **stops = realloc(o->stops, (r->n_stops + 1) * sizeof *stops);
    if (stops) o->stops = stops;
    if (!stops || !prompts_of_ids(&job->prompts, r->tokens, r->n_tokens)) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < r->n_stops; i++)
        o->stops[i] = r->stops[i];
    o->n_stops = r->n_stops;
    o->sampling = r->sampling;
    o->max_new_tokens = r->max_new_tokens;
    return 0;
}

static int prepare(struct job *job) {
    struct generate_options *o = job->o;
    int code = cli_receipt_prepare(&o->receipt);
    if (!code) code = take_request(job);
    if (!code) code = generate_open_checkpoint(job);
    if (!code) code = open_generator(job);
    if (code) return code;
    code = load_tokenizer(job);
    if (!code && !o->request)
        code = prompts_load(&job->prompts, o->prompts, o->n_prompts, job->tokenizer, o->chat_family,
                            o->raw);
    if (!code) code = find_eos(job);
    return code;
}

static void finish(struct job *job) {
    for (size_t i = 0; i < job->prompts.n; i++) {
        if (job->writers) writer_finish(&job->writers[i]);
        if (job->generations) ree_generation_finish(&job->generations[i]);
        for (size_t k = 0; job->n_logprobs && k < job->n_logprobs[i]; k++)
            free(job->logprobs[i][k].top);
        if (job->logprobs) free(job->logprobs[i]);
    }
    free(job->writers);
    free(job->generations);
    free(job->logprobs);
    free(job->n_logprobs);
    free(job->eos);
    free(job->prompts_only);
    ree_text_checkpoint_finish(&job->checkpoint);
    ree_text_checkpoint_finish(&job->resumed);
    tracing_finish(&job->tracing);
    prompts_finish(&job->prompts);
    ree_request_finish(&job->request);
    ree_tokenizer_destroy(job->tokenizer);
    ree_generator_destroy(job->generator);
    cli_stages_finish(&job->o->stages);
}

int ree_run_generate(int argc, char **argv) {
    struct generate_options o;
    struct job job = {.o = &o};
    ree_request_init(&job.request);
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
