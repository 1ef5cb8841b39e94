// The checkpoint options of a generation, and opening the checkpoint that it writes and resumes
// from.
#include "generate_job.h"
#include "paths.h"

static bool take_resume(struct cli *cli, const char *name, void *options) {
    struct generate_options *o = options;
    struct checkpoint_options *c = &o->checkpoint;
    // The next argument is the file only if it can be neither MODEL nor an option.
    if (cli_flag(cli, name)) {
        const char *next = cli->at + 1 < cli->argc ? cli->argv[cli->at + 1] : NULL;
        c->resumes = true;
        if (next && next[0] && next[0] != '-' && o->model) c->from = cli->argv[++cli->at];
        return true;
    }
    return cli_option(cli, name, &c->from) && (c->resumes = true);
}

#define AT(field) offsetof(struct generate_options, field)

static const struct cli_option_row rows[] = {
    // checkpoint_check adds the paths.
    {.name = "--checkpoint",
     .value = "FILE",
     .kind = ROW_STRING,
     .at = AT(checkpoint.path),
     .help = "save the progress of the run in FILE; each save replaces the whole file"},
    {.name = "--checkpoint-every",
     .value = "K",
     .kind = ROW_NUMBER,
     .at = AT(checkpoint.every),
     .min = 1,
     .max = 1 << 20,
     .help = "save whenever a sequence has K more tokens (default 32)"},
    {.name = "--resume",
     .value = "FILE",
     .is_optional = true,
     .kind = ROW_TAKE,
     .path = CLI_READS,
     .take = take_resume,
     .help =
         "continue from a checkpoint, with the same model, prompts and options. The result is "
         "that of a run without interruption. Default for FILE: the file of --checkpoint. With "
         "FILE, --resume must come after MODEL; without --checkpoint, FILE is also written. The "
         "tokens in the checkpoint are computed again and compared"},
};
const struct cli_option_table checkpoint_group = CLI_OPTION_TABLE(rows);

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
