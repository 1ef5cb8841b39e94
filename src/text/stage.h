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

// A parsed stage. What its numbers and strings mean depends on its kind; the comment at the kind's
// parser says it.
struct ree_stage {
    const struct ree_stage_kind *kind; // NULL: empty, does nothing
    uint32_t numbers[4];
    struct ree_str strings[3];
    struct ree_regex *regex; // strings[0], compiled, if it is a regex
    struct ree_stage *children;
    uint32_t n_children;
};

struct ree_stage_kind {
    const char *type;
    int op; // constant of the enum in the family's source file; 0 is always Sequence
    // Reads the parameters from `json` into the stage; NULL: the kind has no parameters.
    enum ree_status (*parse)(struct ree_arena *arena, const cJSON *json, struct ree_stage *stage,
                             struct ree_error *err);
};

struct ree_stage_family {
    const char *what;    // name in error messages, for example "normalizer"
    const char *members; // member of a Sequence with its stages, for example "normalizers"
    const struct ree_stage_kind *kinds;
    size_t n_kinds;
};

extern const struct ree_stage_family ree_normalizers, ree_pretokenizers, ree_postprocessors,
    ree_decoders;

// Parses a stage of the family into *stage, which is zeroed first. If `json` is NULL or null,
// *stage stays zeroed. Fails with REE_UNSUPPORTED if the family does not have the stage's type.
// Release with ree_stage_finish, also on failure.
enum ree_status ree_stage_parse(const struct ree_stage_family *family, struct ree_arena *arena,
                                const cJSON *json, struct ree_stage *stage, struct ree_error *err);
void ree_stage_finish(struct ree_stage *stage);
// Like ree_stage_parse, for a stage of this type whose parameters all have their defaults.
enum ree_status ree_stage_named(const struct ree_stage_family *family, struct ree_arena *arena,
                                const char *type, struct ree_stage *stage, struct ree_error *err);
// Appends type and parameters, each string with its length. Two stages are equal if and only if
// these texts with items are. Items are members that are no stages themselves, such as the tokens
// of a template; without items only their number is in the text.
void ree_stage_describe(const struct ree_stage *stage, bool with_items, struct ree_strbuf *out);
// Appends a string preceded by its length in bytes, for example "5:hello ".
void ree_describe_string(struct ree_str string, struct ree_strbuf *out);

// Reads the member "pattern" of `json`, which is {"String": s} or {"Regex": s}: s into
// stage->strings[0]. For a regex, also compiles it into stage->regex and sets numbers[3] to 1.
enum ree_status ree_stage_pattern(struct ree_arena *arena, const cJSON *json,
                                  struct ree_stage *stage, struct ree_error *err);

// A part of a text in which a stage's pattern was searched for: bytes `start` to `end` - 1 are a
// match or the text between two matches. A match may be empty, but not directly after another
// match. An empty text has no spans.
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
// Searches for the stage's pattern in a text of n bytes and divides the text into *spans, replacing
// their earlier contents. `matcher` may be NULL if the stage has no regex.
enum ree_status ree_stage_search(const struct ree_stage *stage, struct ree_matcher *matcher,
                                 const char *text, size_t n, struct ree_spans *spans,
                                 struct ree_error *err);

#endif
