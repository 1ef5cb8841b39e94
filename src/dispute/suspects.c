#include "dispute/suspects.h"

#include <string.h>

#include "session/profile.h"

struct search {
    const char *label;
    uint32_t repops;
};

static void note(void *user, const struct ree_profile_entry *entry) {
    struct search *search = user;
    if (entry->node && strcmp(entry->node, search->label) == 0) search->repops |= 1u << entry->op;
}

uint32_t ree_suspects_repops(const struct ree_session *session, const struct ree_node *node) {
    char label[512];
    struct search search = {ree_node_label(node, label, sizeof label), 0};
    return ree_session_profile(session, note, &search) ? search.repops : 0;
}

// The primitives of each RepOp (NUMERICS.md), separated by '|'. "*": the RepOp may use any
// primitive.
static const char *const uses[REE_N_REPOPS] = {
    [REE_REPOP_COPY] = "",
    [REE_REPOP_MAP] = "*",
    [REE_REPOP_REDUCE] = "|add|mul|min, max|compare|subnormals|",
    [REE_REPOP_MATMUL] = "*",
    [REE_REPOP_CONV] = "*",
    [REE_REPOP_POOL] = "|add|mul|div|min, max|compare|subnormals|int to float|conversions|",
    [REE_REPOP_SOFTMAX] = "*",
    [REE_REPOP_NORM] = "|add|mul|fma|div|sqrt|int to float|conversions|subnormals|",
    [REE_REPOP_GATHER] = "",
    [REE_REPOP_SCATTER] = "|add|mul|min, max|compare|subnormals|",
    [REE_REPOP_TOPK] = "|compare|",
    [REE_REPOP_SCAN] = "*",
    [REE_REPOP_RESIZE] = "*",
    [REE_REPOP_ATTENTION] = "*",
};

static bool is_used(uint32_t repops, const char *primitive) {
    size_t n = strlen(primitive);
    for (int op = 0; op < REE_N_REPOPS; op++) {
        if (!(repops >> op & 1)) continue;
        if (uses[op][0] == '*') return true;
        for (const char *at = uses[op]; (at = strstr(at, primitive)); at++)
            if (at[-1] == '|' && at[n] == '|') return true;
    }
    return false;
}

static bool is_native(const char *verdict) {
    return strncmp(verdict, "native", 6) == 0 || strcmp(verdict, "kept") == 0;
}

void ree_suspects_find(const struct ree_device *device, uint32_t repops,
                       void (*each)(void *user, const struct ree_device_fact *fact), void *user) {
    const struct ree_device_fact *facts;
    size_t n = ree_device_facts(device, &facts);
    for (size_t i = 0; i < n; i++)
        if (strcmp(facts[i].kind, "primitive") == 0 && !is_native(facts[i].value) &&
            is_used(repops, facts[i].name))
            each(user, &facts[i]);
}
