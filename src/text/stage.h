// The stages of a tokenizer.json: normalizers, pre-tokenizers, post-processors and decoders. Each
// stage is an object with a "type" and parameters. A "Sequence" of stages is also a stage. Each of
// the four families has a source file with the table of its kinds and the code that runs them. This
// header has what the families share: the struct, parsing, and descriptions.
#ifndef REE_TEXT_STAGE_H
#define REE_TEXT_STAGE_H

#include "base/strbuf.h"
#include "text/json.h"
#include "text/regex.h"

struct ree_stage_kind;

// The parser of each kind defines the meaning of the parameters.
struct ree_stage {
    const struct ree_stage_kind *kind; // NULL: no stage
    uint32_t numbers[4];
    struct ree_str strings[3];
    struct ree_regex *regex; // strings[0], compiled, if it is a regex
    struct ree_stage *children;
    uint32_t n_children;
};

struct ree_stage_kind {
    const char *type;
    int op; // from the family's own enum; 0 is always Sequence
    enum ree_status (*parse)(struct ree_arena *arena, const cJSON *json, struct ree_stage *stage,
                             struct ree_error *err); // NULL: no parameters
};

struct ree_stage_family {
    const char *what;    // "normalizer"
    const char *members; // name of a Sequence's member: "normalizers"
    const struct ree_stage_kind *kinds;
    size_t n_kinds;
};

extern const struct ree_stage_family ree_normalizers, ree_pretokenizers, ree_postprocessors,
    ree_decoders;

// Parses a stage. `json` may be NULL: no stage. *stage is zeroed first. Release with
// ree_stage_finish, also on failure.
enum ree_status ree_stage_parse(const struct ree_stage_family *family, struct ree_arena *arena,
                                const cJSON *json, struct ree_stage *stage, struct ree_error *err);
void ree_stage_finish(struct ree_stage *stage);
// Makes the stage with this type and without parameters (that is, with their defaults).
enum ree_status ree_stage_named(const struct ree_stage_family *family, struct ree_arena *arena,
                                const char *type, struct ree_stage *stage, struct ree_error *err);
// Appends type and parameters, each string with its length. Two stages are equal if and only if
// these texts are.
void ree_stage_describe(const struct ree_stage *stage, struct ree_strbuf *out);
void ree_describe_string(struct ree_str string, struct ree_strbuf *out); // for example "5:hello "

// Reads a member "pattern", {"String": s} or {"Regex": s}, into strings[0] and regex.
enum ree_status ree_stage_pattern(struct ree_arena *arena, const cJSON *json,
                                  struct ree_stage *stage, struct ree_error *err);

// Spans divide a text that was searched for a stage's pattern: into matches, and the text between
// them. A match may be empty, but not directly after another match. An empty text has no spans.
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
// Replaces the contents of *spans. `matcher` may be NULL if the stage has no regex.
enum ree_status ree_stage_search(const struct ree_stage *stage, struct ree_matcher *matcher,
                                 const char *text, size_t n, struct ree_spans *spans,
                                 struct ree_error *err);

#endif
