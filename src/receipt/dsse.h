// Attestations of receipts in a form that other tools understand: an in-toto statement (Statement
// v1) in a DSSE envelope, signed with Ed25519.
//
//     {"payloadType": "application/vnd.in-toto+json",
//      "payload": base64 of the statement,
//      "signatures": [{"keyid": the public key in hexadecimal, "sig": base64}]}
//
//     statement: {"_type": "https://in-toto.io/Statement/v1",
//                 "subject": [{"name": file name, "digest": {"sha256": of the receipt's file}}],
//                 "predicateType": "urn:ree:receipt:2",
//                 "predicate": the receipt, without its own signature}
//
// The signature is over "DSSEv1" SP length SP type SP length SP payload (PAE in DSSE's
// specification). It proves who signed, not that the receipt is true.
#ifndef REE_RECEIPT_DSSE_H
#define REE_RECEIPT_DSSE_H

#include "receipt/receipt.h"

// Writes the attestation of a receipt to `path`, atomically. The receipt must be sealed, and must
// already be in the file `receipt_path`.
enum ree_status ree_dsse_write(const struct ree_receipt *receipt, const char *receipt_path,
                               const char *key_path, const char *path, struct ree_error *err);
// Checks the envelope in `path`:
//
// - it is well-formed;
// - it has a valid signature by `public_key` (64 hexadecimal digits; "" accepts the key that the
//   envelope names);
// - its subject is the file `receipt_path`;
// - its predicate is the receipt in that file, without the receipt's own signature.
//
// Fails with REE_INVALID if one of these does not hold. `signer` receives the key in hexadecimal.
enum ree_status ree_dsse_check(const char *path, const char *receipt_path, const char *public_key,
                               char signer[65], struct ree_error *err);

#endif
