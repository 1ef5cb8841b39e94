// Encodes the messages of a dispute as lines of JSON, for the transcript and to count their bytes.
#include <string.h>

#include "dispute/dispute.h"
#include "base/canonical_json.h"

static const char *const names[] = {
    [REE_ASK_COMMIT] = "commit", [REE_ASK_STEPS] = "steps", [REE_ASK_STEP] = "step",
    [REE_ASK_INPUTS] = "inputs", [REE_ASK_NODES] = "nodes", [REE_ASK_INPUT] = "input",
    [REE_ASK_NODE] = "node"};

static bool add_query(cJSON *root, const struct ree_query *q) {
    bool halves = q->ask == REE_ASK_STEPS || q->ask == REE_ASK_INPUTS || q->ask == REE_ASK_NODES;
    bool one = q->ask == REE_ASK_INPUT || q->ask == REE_ASK_NODE;
    bool in_step = q->ask != REE_ASK_COMMIT && q->ask != REE_ASK_STEPS;
    return cJSON_AddStringToObject(root, "ask", names[q->ask]) &&
           (!in_step || cJSON_AddNumberToObject(root, "step", (double)q->step)) &&
           (!halves || (cJSON_AddNumberToObject(root, "first", (double)q->first) &&
                        cJSON_AddNumberToObject(root, "count", (double)q->count))) &&
           (!one || cJSON_AddNumberToObject(root, "index", q->index));
}

static bool add_reply(cJSON *root, const struct ree_query *q, const struct ree_reply *r) {
    if (r->is_silent) return cJSON_AddTrueToObject(root, "silent") != NULL;
    if (q->ask == REE_ASK_COMMIT && !cJSON_AddNumberToObject(root, "n_steps", (double)r->n_steps))
        return false;
    cJSON *array = cJSON_AddArrayToObject(root, "digests");
    bool ok = array != NULL;
    for (size_t i = 0; i < r->n && ok; i++) {
        char hex[65];
        ree_hex(r->digests[i], hex);
        ok = cJSON_AddItemToArray(array, cJSON_CreateString(hex));
    }
    return ok;
}

static enum ree_status put_line(cJSON *root, bool ok, struct ree_strbuf *out,
                                struct ree_error *err) {
    enum ree_status status = ok ? ree_canonical_json(root, out, err) : ree_no_memory(err);
    cJSON_Delete(root);
    ree_strbuf_append(out, "\n", 1);
    if (status == REE_OK && out->failed) status = ree_no_memory(err);
    return status;
}

enum ree_status ree_message_encode_name(const char *party, const struct ree_dispute *dispute,
                                        struct ree_strbuf *out, struct ree_error *err) {
    cJSON *root = cJSON_CreateObject();
    bool is_silent = dispute->kind == REE_DISPUTE_SILENT;
    bool ok =
        cJSON_AddStringToObject(root, "named", party) &&
        cJSON_AddStringToObject(root, "for", is_silent ? "silence" : "contradiction") &&
        cJSON_AddStringToObject(root, "reason", dispute->lie) &&
        cJSON_AddStringToObject(root, "proof", "none for others, because answers are not signed");
    return put_line(root, ok, out, err);
}

enum ree_status ree_message_encode(const char *party, const struct ree_query *query,
                                   const struct ree_reply *reply, struct ree_strbuf *out,
                                   struct ree_error *err) {
    cJSON *root = cJSON_CreateObject();
    bool ok = cJSON_AddStringToObject(root, reply ? "from" : "to", party) &&
              (reply ? add_reply(root, query, reply) : add_query(root, query));
    return put_line(root, ok, out, err);
}
