// Reads the model's own metadata: the keys ree.* that graph/hf/causal.c writes.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/source.h"

// Reads an integer in [0, 2^31) at *at and advances *at. Only digits are accepted.
static bool take_number(const char **at, int32_t *out) {
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9' && value <= INT32_MAX; ++*at)
        value = value * 10 + (**at - '0');
    *out = (int32_t)(value <= INT32_MAX ? value : 0);
    return *at > start && value <= INT32_MAX;
}

// Reads an integer from the metadata. *found: whether the model has the key.
static enum ree_status read_number(const struct ree_model *model, const char *key, int32_t *out,
                                   bool *found, struct ree_error *err) {
    const char *text = ree_model_metadata(model, key), *at = text;
    *found = text != NULL;
    if (!text || (take_number(&at, out) && !*at)) return REE_OK;
    return ree_fail(err, REE_INVALID, "metadata '%s' is '%.64s', expected an integer", key, text);
}

// Reads a list of tokens such as "2,3"; an empty text means no tokens.
static enum ree_status read_eos(const struct ree_model *model, struct ree_model_source *source,
                                struct ree_error *err) {
    const char *text = ree_model_metadata(model, "ree.eos_token_ids"), *at = text;
    if (!text || !*text) return REE_OK;
    int32_t *ids = ree_alloc((strlen(text) / 2 + 1) * sizeof *ids);
    if (!ids) return ree_no_memory(err);
    size_t n = 0;
    bool more = true;
    while (more && n < REE_MAX_EOS && take_number(&at, &ids[n])) {
        n++;
        more = *at == ',';
        at += more;
    }
    if (more || *at) {
        ree_free(ids);
        return ree_fail(err, REE_INVALID,
                        "metadata 'ree.eos_token_ids' is '%.64s', expected at most %d integers "
                        "separated by commas",
                        text, REE_MAX_EOS);
    }
    ree_free(source->eos);
    source->eos = ids;
    source->n_eos = n;
    return REE_OK;
}

enum ree_status ree_model_source_complete(struct ree_model_source *source,
                                          const struct ree_model *model, struct ree_error *err) {
    int32_t number = 0;
    bool found;
    REE_TRY(read_number(model, "ree.context_length", &number, &found, err));
    // It is the length of the checkpoint, which must not depend on what lies beside the file.
    if (found && number > 0) source->context_length = number;
    REE_TRY(read_number(model, "ree.bos_token_id", &number, &found, err));
    if (found && source->bos < 0) source->bos = number;
    REE_TRY(read_eos(model, source, err)); // as the length
    const char *type = ree_model_metadata(model, "ree.model_type");
    if (!type || *source->model_type) return REE_OK;
    char *copy = ree_strdup(type);
    if (!copy) return ree_no_memory(err);
    ree_free(source->model_type);
    source->model_type = copy;
    return REE_OK;
}
