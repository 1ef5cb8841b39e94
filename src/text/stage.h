// The stages of a tokenizer.json: normalizers, pre-tokenizers, post-processors and decoders. Each
// is an object with a "type" and parameters, and a "Sequence" of others counts as one. A family's
// file has the table of its kinds and runs them; here is what they share: the struct, reading,
// describing.
#ifndef REE_TEXT_STAGE_H
#define REE_TEXT_STAGE_H

#include "base/strbuf.h"
#include "text/json.h"
#include "text/regex.h"

struct ree_stage_kind;

// What the parameters mean, each kind's parser says.
struct ree_stage {
    const struct ree_stage_kind *kind; // NULL: nothing is done
    uint32_t numbers[4];
    struct ree_str strings[3];
    struct ree_regex *regex; // strings[0], compiled, where it is one
    struct ree_stage *children;
    uint32_t n_children;
};

struct ree_stage_kind {
    const char *type;
    int op; // the family's own enum; 0 is Sequence in each
    enum ree_status (*parse)(struct ree_arena *arena, const cJSON *json, struct ree_stage *stage,
                             struct ree_error *err); // NULL: no parameters
};

struct ree_stage_family {
    const char *what;    // "normalizer"
    const char *members; // of a Sequence: "normalizers"
    const struct ree_stage_kind *kinds;
    size_t n_kinds;
};

extern const struct ree_stage_family ree_normalizers, ree_pretokenizers, ree_postprocessors,
    ree_decoders;

// `json` may be NULL. *stage is zeroed first; finish it also after a failure.
enum ree_status ree_stage_parse(const struct ree_stage_family *family, struct ree_arena *arena,
                                const cJSON *json, struct ree_stage *stage, struct ree_error *err);
void ree_stage_finish(struct ree_stage *stage);
// The stage of a family without parameters or with defaults, by its type.
enum ree_status ree_stage_named(const struct ree_stage_family *family, struct ree_arena *arena,
                                const char *type, struct ree_stage *stage, struct ree_error *err);
// Appends type and parameters, each string with its length: equal texts, equal stages.
void ree_stage_describe(const struct ree_stage *stage, struct ree_strbuf *out);
void ree_describe_string(struct ree_str string, struct ree_strbuf *out); // "5:hello "

// A member "pattern": {"String": s} or {"Regex": s}, into strings[0] and regex.
enum ree_status ree_stage_pattern(struct ree_arena *arena, const cJSON *json,
                                  struct ree_stage *stage, struct ree_error *err);

// One after the other, what matches and what lies between, of a text that a stage's pattern is
// sought in. A match can be empty, but not right behind another; in an empty text there is none.
struct ree_span {
    size_t start, end;
    bool match;
};
struct ree_spans {
    struct ree_span *items;
    size_t n, capacity;
};
enum ree_status ree_spans_add(struct ree_spans *spans, size_t start, size_t end, bool match,
                              struct ree_error *err);
// Replaces *spans' contents. `matcher` may be NULL for stages that have no regex.
enum ree_status ree_stage_search(const struct ree_stage *stage, struct ree_matcher *matcher,
                                 const char *text, size_t n, struct ree_spans *spans,
                                 struct ree_error *err);

#endif
