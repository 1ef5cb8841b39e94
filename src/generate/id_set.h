// Sets of token ids. A list from a receipt can be as long as its file, so lookups use binary search
// instead of a linear scan.
#ifndef REE_GENERATE_ID_SET_H
#define REE_GENERATE_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ree.h"

struct ree_id_set {
    size_t n;
    int32_t *ids; // ascending, without duplicates; owned
};

// Makes the set of ids[0 ... n-1], which may be unsorted and contain duplicates. Fails only with
// REE_NO_MEMORY; *out is then empty. Release *out with ree_id_set_finish.
enum ree_status ree_id_set_make(const int32_t *ids, size_t n, struct ree_id_set *out,
                                struct ree_error *err);
bool ree_id_set_has(const struct ree_id_set *set, int32_t id);
// Whether all ids of `part` are in `set`.
bool ree_id_set_contains(const struct ree_id_set *set, const struct ree_id_set *part);
bool ree_id_set_is_same(const struct ree_id_set *a, const struct ree_id_set *b);
void ree_id_set_finish(struct ree_id_set *set);

#endif
