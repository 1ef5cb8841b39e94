// Decodes a claim of arbitrary bytes. It must return a claim, or an error with a message. A decoded
// claim must encode to the same bytes, and checking its proofs must succeed or give a message.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_claim
//     build-fuzz/tests/fuzz/fuzz_claim FOLDER tests/data/claim
#include <stdlib.h>
#include <string.h>

#include "dispute/claim.h"
#include "replay.h"

bool fuzz_accepted;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct ree_claim *claim = NULL;
    struct ree_error err = {0};
    enum ree_status status = ree_claim_decode(bytes, size, &claim, &err);
    if (status != REE_OK) {
        if (claim || err.status != status || !err.message[0] || status == REE_INTERNAL) abort();
        return 0;
    }
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    if (ree_claim_encode(claim, &text, &err) != REE_OK) abort();
    if (text.size != size || memcmp(text.data, bytes, size) != 0) abort();
    ree_strbuf_finish(&text);
    err.message[0] = 0;
    status = ree_claim_check(claim, &err);
    if (status != REE_OK && !err.message[0]) abort();
    fuzz_accepted = status == REE_OK;
    ree_claim_misread(claim, 0);
    ree_claim_misread(claim, 1);
    ree_claim_destroy(claim);
    return 0;
}
