// Makes a receipt of a generated text, and verifies a receipt. Prover and verifier may use
// different devices.
//
//     receipt make RECEIPT MODEL TEXT [DEVICE]      runs the model and writes RECEIPT
//     receipt verify RECEIPT MODEL [DEVICE]         runs it again: is RECEIPT true?
#include <ree.h>

#include <stdio.h>
#include <string.h>

static enum ree_status make(const char *path, const char *model, const char *text,
                            struct ree_device *device, struct ree_error *err) {
    struct ree_generator *generator = NULL;
    struct ree_completion *completion = NULL;
    struct ree_receipt *receipt = NULL;
    struct ree_completion_options options = {.size = sizeof options, .max_new_tokens = 24};
    enum ree_status status = ree_generator_create(model, device, NULL, &generator, err);
    if (!status)
        status = ree_complete_text(generator, text, strlen(text), &options, &completion, err);
    // Hashes the model, prompt and answer. ree_receipt_sign would sign it.
    if (!status) status = ree_receipt_create_text(completion, NULL, &receipt, err);
    if (!status) status = ree_receipt_write(receipt, path, err);
    if (!status)
        printf("%s\nreceipt %s\n", ree_completion_text(completion, 0, NULL),
               ree_receipt_info(receipt)->receipt_hash);
    ree_receipt_destroy(receipt);
    ree_completion_destroy(completion);
    ree_generator_destroy(generator);
    return status;
}

static enum ree_status verify(const char *path, const char *model, struct ree_device *device,
                              enum ree_verify_verdict *out_verdict, struct ree_error *err) {
    struct ree_receipt *receipt = NULL;
    struct ree_verification *verification = NULL;
    const struct ree_verify_check *checks;
    enum ree_status status = ree_receipt_load(path, &receipt, err);
    // Compares every field with the verifier's own copy of the model, and runs the model. A failure
    // is about the model or the device; the result about the receipt is in `verification`.
    if (!status) status = ree_verify(receipt, model, device, NULL, NULL, NULL, &verification, err);
    if (!status) {
        size_t n = ree_verification_checks(verification, &checks);
        for (size_t i = 0; i < n; i++)
            if (checks[i].outcome != REE_VERIFY_AGREES)
                printf("%s: %s\n", checks[i].name, checks[i].detail);
        *out_verdict = ree_verification_verdict(verification);
        printf("%s\n", ree_verify_verdict_name(*out_verdict));
    }
    ree_verification_destroy(verification);
    ree_receipt_destroy(receipt);
    return status;
}

int main(int argc, char **argv) {
    struct ree_error err = {0};
    struct ree_device *device = NULL;
    enum ree_verify_verdict verdict = REE_VERIFIED;
    bool makes = argc >= 5 && argc <= 6 && strcmp(argv[1], "make") == 0;
    if (!makes && (argc < 4 || argc > 5 || strcmp(argv[1], "verify") != 0))
        return fprintf(stderr, "usage: receipt make RECEIPT MODEL TEXT [DEVICE]\n"
                               "       receipt verify RECEIPT MODEL [DEVICE]\n"),
               2;
    const char *spec = argc > (makes ? 5 : 4) ? argv[argc - 1] : "cpu";
    enum ree_status status = ree_device_open(spec, NULL, &device, &err);
    if (!status)
        status = makes ? make(argv[2], argv[3], argv[4], device, &err)
                       : verify(argv[2], argv[3], device, &verdict, &err);
    if (status) fprintf(stderr, "%s\n", err.message);
    ree_device_destroy(device);
    return status ? 2 : verdict == REE_VERIFIED ? 0 : 1;
}
