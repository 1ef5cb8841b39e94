// Receipts on the heap, as the public interface has them, with storage for the values that public
// functions return about a receipt.
#ifndef REE_RECEIPT_RECEIPT_OBJECT_H
#define REE_RECEIPT_RECEIPT_OBJECT_H

#include "receipt/receipt.h"

struct ree_receipt_object {
    struct ree_receipt_info info; // the last result of ree_receipt_info
    char *json;                   // the last result of ree_receipt_json; NULL: none
    char *path;                   // path of the file that the receipt was loaded from; NULL: none
    struct ree_receipt_finding findings[REE_RECEIPT_MAX_FINDINGS + 2];
};

// Allocates an empty receipt and its `object`. Release *out with ree_receipt_destroy.
enum ree_status ree_receipt_create(struct ree_receipt **out, struct ree_error *err);

#endif
