// The inputs of a model that runs once, as a receipt gives them to the run: those that it states,
// and of the others the model's default values, or that they are absent.
#ifndef REE_DISPUTE_GIVEN_INPUTS_H
#define REE_DISPUTE_GIVEN_INPUTS_H

#include "receipt/receipt.h"
#include "trace/open_model.h"

struct ree_given_input {
    ree_digest digest; // the digest that the input has in the run's trace
    bool is_stated;    // the receipt lists the input
    // The receipt has version 1, and the input has floats. Version 1 hashes NaNs as they are, so
    // `digest` is right only if the input has no NaNs but canonical ones.
    bool is_unsure;
};

// Fills in out[i] for each input i of the model. Fails with REE_INVALID if no run of the model has
// the inputs that the receipt lists, or has them in this order.
enum ree_status ree_given_inputs_make(const struct ree_receipt *receipt,
                                      const struct ree_opened *model, struct ree_given_input *out,
                                      struct ree_error *err);
// Computes the digest of one input. Fails with REE_INVALID if the receipt does not determine it,
// and with REE_UNSUPPORTED if it is unsure.
enum ree_status ree_given_input_digest(const struct ree_receipt *receipt,
                                       const struct ree_opened *model, uint32_t input,
                                       ree_digest out, struct ree_error *err);
// Sets *out to whether two receipts give equal inputs, in whatever form: an input that one of them
// leaves out equals its default value. Fails with REE_NO_MEMORY.
enum ree_status ree_given_inputs_compare(const struct ree_receipt *a, const struct ree_receipt *b,
                                         const struct ree_opened *model, bool *out,
                                         struct ree_error *err);

#endif
