// The receipt of a generated text.
#include <string.h>

#include "generate_job.h"

// Collects the contents of a receipt. Members that are unknown before the run are then NULL.
static struct ree_text_run describe_run(const struct job *job,
                                        const struct ree_generate_options *options,
                                        const struct ree_generate_stats *stats) {
    return (struct ree_text_run){
        .model = &job->hashes,
        .tokenizer = job->tokenizer,
        .operation_set = job->o->device.options.operation_set,
        .context_length = ree_generator_info(job->generator)->context_length,
        .options = options,
        .stops = job->o->stops,
        .n_stops = job->o->n_stops,
        .generation = job->generations,
        .salt = job->o->receipt.is_private ? job->o->receipt.salt : NULL,
        .request_sha256 = job->o->request ? job->request.request_sha256 : NULL,
        .trace = job->has_trace ? &job->traced : NULL,
        .device = cli_stages_device(&job->o->stages),
        .stats = stats,
    };
}

int generate_prepare_receipt(struct job *job, const struct ree_generate_options *options) {
    struct ree_error err;
    bool wanted = job->o->receipt.path;
    if (!wanted && !job->o->checkpoint.path) return 0;
    if (wanted && job->prompts.n > 1) {
        cli_error("a receipt requires one prompt, not %zu", job->prompts.n);
        return CLI_USAGE;
    }
    const struct ree_request *request = &job->request;
    struct ree_text_run run = describe_run(job, options, NULL);
    if ((wanted && (ree_roles_check_bound(&job->generator->roles, &err) != REE_OK ||
                    ree_receipt_try_text(&run, &err) != REE_OK)) ||
        ree_model_hashes_make(job->generator->model, &cli_reports, &job->hashes, &err) != REE_OK)
        return cli_fail(&err);
    if (request->graph_sha256[0] && (strcmp(request->graph_sha256, job->hashes.graph) != 0 ||
                                     strcmp(request->weights_sha256, job->hashes.weights) != 0)) {
        cli_error("%s: requests another model", job->o->request);
        return CLI_FAILED;
    }
    return 0;
}

int generate_save_receipt(struct job *job, const struct ree_generate_options *options,
                          const struct ree_generate_stats *stats) {
    struct ree_error err;
    struct ree_receipt receipt;
    struct ree_text_run run = describe_run(job, options, stats);
    if (!job->o->receipt.path) return 0;
    int code = ree_receipt_make_text(&run, &receipt, &err) == REE_OK
                   ? cli_receipt_save(&job->o->receipt, &receipt)
                   : cli_fail(&err);
    if (!code) memcpy(job->receipt_hash, receipt.receipt_hash, sizeof job->receipt_hash);
    ree_receipt_finish(&receipt);
    return code;
}
