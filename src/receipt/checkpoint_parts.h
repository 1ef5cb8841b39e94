// What the files about checkpoints share; not for others.
#ifndef REE_RECEIPT_CHECKPOINT_PARTS_H
#define REE_RECEIPT_CHECKPOINT_PARTS_H

#include "receipt/checkpoint.h"

#define REE_TEXT_CHECKPOINT_SCHEMA "ree-checkpoint/1"

// What is hashed, as JSON: the caller's. NULL: out of memory.
cJSON *ree_text_checkpoint_body(const struct ree_text_checkpoint *checkpoint);

#endif
