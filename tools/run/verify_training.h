// The part of `ree-run verify` that checks receipts of trainings.
#ifndef REE_TOOLS_RUN_VERIFY_TRAINING_H
#define REE_TOOLS_RUN_VERIFY_TRAINING_H

#include "verify_options.h"

// Repeats the training of the receipt o->receipt with the samples o->data. Returns an exit code of
// `ree-run verify`.
int verify_training(const struct verify_options *o);

#endif
