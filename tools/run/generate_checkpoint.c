// Checkpoints of a generation, and resuming from one.
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

static void on_difference(void *user, const char *line) {
    struct job *job = user;
    struct strbuf text;
    job->is_other_run = true;
    strbuf_init(&text);
    cli_append_name(&text, line);
    cli_error("%s: %s", job->o->checkpoint.from, text.data ? text.data : "out of memory");
    strbuf_finish(&text);
}

static void on_warning(void *user, const char *message) {
    (void)user;
    cli_error("%s; the run continues, and the last checkpoint remains", message);
}

int generate_open_checkpoint(struct job *job) {
    const struct checkpoint_options *o = &job->o->checkpoint;
    struct ree_error err;
    if (!o->path) return 0;
    int code = cli_check_output_path(o->path, "a checkpoint");
    if (code) return code;
    struct ree_checkpoint_options options = {.size = sizeof options,
                                             .path = o->path,
                                             .every = (size_t)o->every,
                                             .resume = o->from,
                                             .is_secret = job->o->receipt.is_private,
                                             .on_difference = on_difference,
                                             .on_warning = on_warning,
                                             .user = job};
    return ree_checkpoint_open(&options, &job->checkpoint, &err) == REE_OK ? 0 : cli_fail(&err);
}

int generate_attach_checkpoint(struct job *job) {
    struct ree_error err;
    if (!job->checkpoint) return 0;
    if (ree_checkpoint_attach(job->checkpoint, job->completion, &err) == REE_OK) return 0;
    cli_fail(&err);
    return job->is_other_run ? CLI_USAGE : CLI_FAILED;
}
