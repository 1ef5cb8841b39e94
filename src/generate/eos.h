// Finds the eos tokens of a model: the tokens that end an answer.
#ifndef REE_GENERATE_EOS_H
#define REE_GENERATE_EOS_H

#include "ree.h"

// Lists the ids named by the model's files, then the additional ids named by its tokenizer, without
// duplicates. If the former name none, the model's files beside the tokenizer count. `tokenizer`
// may be NULL. Release *out with ree_free. Returns false if memory is exhausted.
bool ree_eos_ids(const struct ree_generator_info *model, const struct ree_tokenizer *tokenizer,
                 int32_t **out, size_t *out_n);
// Returns how many of these ids its tokenizer names.
size_t ree_eos_of_tokenizer(const struct ree_generator_info *model,
                            const struct ree_tokenizer *tokenizer);

#endif
