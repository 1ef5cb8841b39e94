// Internal declarations of checkpoints (checkpoint.h), shared by the checkpoint*.c files.
#ifndef REE_RECEIPT_CHECKPOINT_INTERNAL_H
#define REE_RECEIPT_CHECKPOINT_INTERNAL_H

#include "receipt/checkpoint.h"

#define REE_TEXT_CHECKPOINT_SCHEMA "ree-checkpoint/1"

// Makes the JSON object "body" of a checkpoint, which checkpoint_sha256 covers. Release the result
// with cJSON_Delete. NULL: out of memory.
cJSON *ree_text_checkpoint_body(const struct ree_text_checkpoint *checkpoint);

#endif
