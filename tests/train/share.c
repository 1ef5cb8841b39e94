// Divides a training step among ranks, and prints what each rank has, or why the step cannot be
// divided.
//
//     train_share STEP RANKS
#include "graph/share/share.h"
#include "session/model.h"
#include "train/step_roles.h"

#include <stdio.h>
#include <stdlib.h>

static enum ree_status divide(struct ree_model *model, int64_t n_ranks, struct ree_error *err) {
    struct ree_step_roles roles;
    const struct ree_value *data[16];
    enum ree_status status = ree_step_roles_read(model, &roles, err);
    if (status == REE_OK) status = ree_model_infer_always(model->graph, err);
    for (size_t i = 0; i < roles.n_data && i < 16; i++)
        data[i] = model->input_values[roles.data[i]];
    for (int64_t rank = 0; status == REE_OK && rank < n_ranks; rank++) {
        struct ree_share share;
        const struct ree_share_options options = {.data = data,
                                                  .n_data = roles.n_data,
                                                  .batch = roles.batch_size,
                                                  .begin = roles.batch_size * rank / n_ranks,
                                                  .end = roles.batch_size * (rank + 1) / n_ranks};
        status = ree_share_make(model->graph, &options, &share, err);
        for (size_t i = 0; status == REE_OK && i < share.n_parts; i++)
            printf("rank %lld, part %zu: %zu nodes, %zu inputs, %zu outputs, %zu sums\n",
                   (long long)rank, i, share.parts[i].graph->n_nodes, share.parts[i].n_inputs,
                   share.parts[i].n_outputs, share.parts[i].n_sums);
        ree_share_finish(&share);
    }
    ree_step_roles_finish(&roles);
    return status;
}

int main(int argc, char **argv) {
    struct ree_error err;
    struct ree_model *model = NULL;
    if (argc != 3) return 2;
    enum ree_status status = ree_model_load(argv[1], NULL, &model, &err);
    if (status == REE_OK) status = divide(model, atoi(argv[2]), &err);
    if (status != REE_OK) fprintf(stderr, "%s\n", err.message);
    ree_model_destroy(model);
    return status != REE_OK;
}
