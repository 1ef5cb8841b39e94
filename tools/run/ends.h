// The tokens that end an answer.
#ifndef REE_TOOLS_RUN_ENDS_H
#define REE_TOOLS_RUN_ENDS_H

#include "ree.h"

// Those of the model, then those that its tokenizer (may be NULL) has besides, each once. *out is
// released with free. false: out of memory.
bool cli_ends(const struct ree_generator_info *model, const struct ree_tokenizer *tokenizer,
              int32_t **out, size_t *out_n);

#endif
