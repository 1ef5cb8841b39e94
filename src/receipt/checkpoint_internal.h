// Internal interface of the checkpoint*.c files.
#ifndef REE_RECEIPT_CHECKPOINT_INTERNAL_H
#define REE_RECEIPT_CHECKPOINT_INTERNAL_H

#include "receipt/checkpoint.h"

#define REE_TEXT_CHECKPOINT_SCHEMA "ree-checkpoint/1"

// The checkpoint's "body", which is what is hashed. The caller owns the result. NULL: out of
// memory.
cJSON *ree_text_checkpoint_body(const struct ree_text_checkpoint *checkpoint);

#endif
