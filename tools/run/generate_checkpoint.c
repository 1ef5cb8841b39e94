// Checkpoints of a generation, and resuming from one.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "generate_job.h"
#include "paths.h"

bool checkpoint_option(struct cli *cli, struct generate_options *o) {
    struct checkpoint_options *c = &o->checkpoint;
    // The next argument is the file only if it can be nothing else.
    if (cli_flag(cli, "--resume")) {
        const char *next = cli->at + 1 < cli->argc ? cli->argv[cli->at + 1] : NULL;
        c->resumes = true;
        if (next && next[0] && next[0] != '-' && o->model) c->from = cli->argv[++cli->at];
        return true;
    }
    if (cli_option(cli, "--resume", &c->from)) return c->resumes = true;
    return cli_option(cli, "--checkpoint", &c->path) ||
           cli_option_number(cli, "--checkpoint-every", 1, 1 << 20, &c->every);
}

void checkpoint_check(struct cli *cli, struct generate_options *o) {
    struct checkpoint_options *c = &o->checkpoint;
    if (c->resumes && !c->from) c->from = c->path;
    if (!c->path) c->path = c->from;
    cli_path_add(CLI_READS, c->from);
    cli_path_add(CLI_WRITES, c->path);
    if (!c->path) {
        if (c->resumes)
            cli_usage(cli, "--resume requires a file: --resume FILE or --checkpoint FILE");
        if (c->every) cli_usage(cli, "--checkpoint-every requires --checkpoint FILE");
        return;
    }
    // Recomputed results must be the same, so the operation set must be reproducible.
    if (o->device.options.operation_set != REE_REPRODUCIBLE)
        cli_usage(cli, "--checkpoint requires the operation set reproducible, not %s",
                  ree_operation_set_name(o->device.options.operation_set));
    if (o->n_logprobs)
        cli_usage(cli, "--checkpoint and --logprobs exclude each other: a checkpoint stores no log "
                       "probabilities");
    if (trace_options_any(&o->tracing))
        cli_usage(cli,
                  "--checkpoint cannot be used with --trace, --dump-tensors or --inject-fault");
}

// Describes this run, for comparison and for writing.
static int describe(struct job *job, const struct ree_generate_options *options) {
    struct ree_receipt *run = &job->checkpoint.run;
    size_t n = job->prompts.n;
    ree_receipt_init(run);
    job->prompts_only = calloc(n, sizeof *job->prompts_only);
    if (!job->prompts_only) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    run->numerics = ree_numerics_version();
    run->operation_set = ree_operation_set_name(job->o->device.options.operation_set);
    memcpy(run->graph_sha256, job->hashes.graph, sizeof run->graph_sha256);
    memcpy(run->weights_sha256, job->hashes.weights, sizeof run->weights_sha256);
    if (job->tokenizer) ree_tokenizer_sha256(job->tokenizer, run->tokenizer_sha256);
    run->sampling = options->sampling;
    run->max_new_tokens = options->max_new_tokens;
    run->context_length = ree_generator_info(job->generator)->context_length;
    run->stops = job->o->stops;
    run->n_stops = job->o->n_stops;
    run->eos = options->eos;
    run->n_eos = options->n_eos;
    job->checkpoint.logits_hash = job->o->logits_hash;
    job->checkpoint.is_secret = job->o->receipt.is_private; // because it contains the tokens
    for (size_t i = 0; i < n; i++)
        job->prompts_only[i] = (struct ree_snapshot){.ids = job->prompts.list[i].ids,
                                                     .n_prompt = job->prompts.list[i].n,
                                                     .n = job->prompts.list[i].n};
    job->checkpoint.sequences = job->prompts_only;
    job->checkpoint.n = n;
    return 0;
}

// Protects an existing checkpoint, perhaps of a run of days, from being overwritten by mistake.
static int check_output_path(const struct checkpoint_options *o) {
    struct ree_error err;
    struct ree_text_checkpoint there;
    struct stat st;
    bool same = o->from && strcmp(o->from, o->path) == 0;
    int code = cli_check_output_path(o->path, "a checkpoint");
    if (code || same || stat(o->path, &st) != 0) return code;
    bool ok = ree_text_checkpoint_load(o->path, &there, &err) == REE_OK &&
              ree_text_checkpoint_is_done(&there);
    ree_text_checkpoint_finish(&there);
    if (ok) return 0;
    cli_error("%s: already exists, and is not the checkpoint of a finished run: continue with "
              "--resume, choose another name, or remove it",
              o->path);
    return CLI_FAILED;
}

static void on_difference(void *user, const char *line) {
    const struct job *job = user;
    struct strbuf text;
    strbuf_init(&text);
    cli_append_name(&text, line);
    cli_error("%s: %s", job->o->checkpoint.from, text.data ? text.data : "out of memory");
    strbuf_finish(&text);
}

int generate_open_checkpoint(struct job *job) {
    const struct checkpoint_options *o = &job->o->checkpoint;
    struct ree_error err;
    if (!o->path) return 0;
    int code = check_output_path(o);
    if (code || !o->from) return code;
    return ree_text_checkpoint_load(o->from, &job->resumed, &err) == REE_OK ? 0 : cli_fail(&err);
}

static int compare(struct job *job) {
    struct ree_error err;
    size_t n = 0;
    if (ree_text_checkpoint_compare(&job->resumed, &job->checkpoint, on_difference, job, &n,
                                    &err) != REE_OK)
        return cli_fail(&err);
    if (!n) return 0;
    cli_error("%s: is the checkpoint of another run; see the differences above",
              job->o->checkpoint.from);
    return CLI_USAGE;
}

// A run of hours does not end because a disk is full: the last written checkpoint remains.
static enum ree_status on_checkpoint(void *user, const struct ree_snapshot *sequences, size_t n,
                                     struct ree_error *err) {
    struct job *job = user;
    struct ree_text_checkpoint checkpoint = job->checkpoint;
    checkpoint.sequences = sequences;
    checkpoint.n = n;
    enum ree_status status = ree_text_checkpoint_write(&checkpoint, job->o->checkpoint.path, err);
    if (status != REE_OK && !job->is_kept) return status;
    if (status != REE_OK && !job->checkpoint_failed)
        cli_error("%s; the run continues, and the last checkpoint remains", err->message);
    job->is_kept = true;
    job->checkpoint_failed = status != REE_OK;
    return REE_OK;
}

int generate_prepare_checkpoint(struct job *job, struct ree_generate_options *options) {
    const struct checkpoint_options *o = &job->o->checkpoint;
    if (!o->path) return 0;
    int code = describe(job, options);
    if (!code && o->from) code = compare(job);
    if (code) return code;
    options->on_checkpoint = on_checkpoint;
    options->checkpoint_every = (size_t)o->every;
    if (o->from) options->resume = job->resumed.sequences;
    return 0;
}

int generate_replay(struct job *job) {
    for (size_t i = 0; i < job->resumed.n; i++) {
        const struct ree_snapshot *s = &job->resumed.sequences[i];
        struct writer *w = &job->writers[i];
        bool stops = false;
        for (size_t k = s->n_prompt; k < s->n && !stops; k++) {
            stops = !writer_push(w, s->ids[k]);
            if (w->failed) return CLI_FAILED;
            if (stops && k + 1 == s->n && s->is_done) break;
            if (!stops) continue;
            cli_error("%s: sequence %zu continues after a stop text", job->o->checkpoint.from, i);
            return CLI_FAILED;
        }
        // A token that ends a text takes precedence over a stop text that it completes.
        if (!s->is_done || s->finish == REE_FINISH_EOS || stops == (s->finish == REE_FINISH_STOP))
            continue;
        cli_error("%s: sequence %zu ends with %s stop text, which contradicts its recorded finish",
                  job->o->checkpoint.from, i, stops ? "a" : "no");
        return CLI_FAILED;
    }
    return 0;
}
