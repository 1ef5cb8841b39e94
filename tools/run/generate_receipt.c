// The receipt of a generated text.
#include <string.h>

#include "generate_job.h"

static struct ree_receipt_options describe(const struct job *job,
                                           const struct ree_receipt_trace *trace) {
    return (struct ree_receipt_options){.size = sizeof(struct ree_receipt_options),
                                        .is_private = job->o->receipt.is_private,
                                        .trace = trace,
                                        .progress = cli_reports};
}

int generate_prepare_receipt(struct job *job) {
    struct ree_error err;
    if (!job->o->receipt.path) return 0;
    if (job->n > 1) {
        cli_error("a receipt requires one prompt, not %zu", job->n);
        return CLI_USAGE;
    }
    struct ree_receipt_options options = describe(job, NULL);
    if (ree_receipt_prepare(job->completion, &options, &err) == REE_OK) return 0;
    return cli_fail(&err);
}

int generate_save_receipt(struct job *job) {
    struct ree_error err;
    struct ree_receipt *receipt = NULL;
    struct ree_receipt_trace trace;
    if (!job->o->receipt.path) return 0;
    struct ree_receipt_options options =
        describe(job, cli_receipt_trace(job->has_trace ? &job->traced : NULL, &trace));
    int code = ree_receipt_create_text(job->completion, &options, &receipt, &err) == REE_OK
                   ? cli_receipt_save(&job->o->receipt, receipt)
                   : cli_fail(&err);
    if (!code)
        memcpy(job->receipt_hash, ree_receipt_info(receipt)->receipt_hash,
               sizeof job->receipt_hash);
    ree_receipt_destroy(receipt);
    return code;
}
