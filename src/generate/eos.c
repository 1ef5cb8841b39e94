#include "generate/eos.h"

#include <stdlib.h>
#include "base/memory.h"
#include "text/tokenizer.h"

static bool has(const int32_t *ids, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

// Lists the ids that the tokenizer names. The model's files may lie beside the tokenizer, or not.
// Those that the model was found with count once they name a token.
static size_t of_tokenizer(const struct ree_generator_info *model,
                           const struct ree_tokenizer *tokenizer, const int32_t **out) {
    *out = NULL;
    if (!tokenizer) return 0;
    return model->n_eos ? ree_tokenizer_own_eos(tokenizer, out) : ree_tokenizer_eos(tokenizer, out);
}

size_t ree_eos_of_tokenizer(const struct ree_generator_info *model,
                            const struct ree_tokenizer *tokenizer) {
    const int32_t *ids;
    return of_tokenizer(model, tokenizer, &ids);
}

bool ree_eos_ids(const struct ree_generator_info *model, const struct ree_tokenizer *tokenizer,
                 int32_t **out, size_t *out_n) {
    const int32_t *more = NULL;
    size_t n_more = of_tokenizer(model, tokenizer, &more), n = 0;
    *out = ree_alloc((model->n_eos + n_more + 1) * sizeof **out);
    *out_n = 0;
    if (!*out) return false;
    for (size_t i = 0; i < model->n_eos; i++)
        if (!has(*out, n, model->eos[i])) (*out)[n++] = model->eos[i];
    // The tokenizer's list has no duplicates, so its ids are compared only with the model's.
    size_t n_model = n;
    for (size_t i = 0; i < n_more; i++)
        if (!has(*out, n_model, more[i])) (*out)[n++] = more[i];
    *out_n = n;
    return true;
}
