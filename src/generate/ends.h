// The tokens that end an answer.
#ifndef REE_GENERATE_ENDS_H
#define REE_GENERATE_ENDS_H

#include "ree.h"

// The ids that the model's files name, then those that only its tokenizer (may be NULL) names, each
// once. *out is released with free. false: out of memory.
bool ree_ends_of(const struct ree_generator_info *model, const struct ree_tokenizer *tokenizer,
                 int32_t **out, size_t *out_n);

#endif
