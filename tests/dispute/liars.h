// Shared by the tests of lying parties: the true run of the sample model, a party's statement about
// that run, a party that answers a dispute's questions from its statement, and the lies.
#ifndef REE_TESTS_AUDIT_LIARS_H
#define REE_TESTS_AUDIT_LIARS_H

#include "dispute/dispute.h"
#include "trace/model_header.h"
#include "dispute/referee.h"
#include "dispute/tree.h"

#define MOST 64 // maximum number of inputs or of outputs of a node

// Random numbers, the same in every run. draw returns a number less than `below`; draw_digest
// writes a random digest, which belongs to no value.
uint64_t draw(uint64_t below);
void draw_digest(ree_digest out);

// The true run. The test fills it in.
struct truth {
    const char *model, *values;
    char receipt_path[4096];
    struct ree_opened opened; // the model; for claims that do not change its graph
    struct ree_rules rules;
    struct ree_trace *trace;
    struct ree_tokenizer *tokenizer; // the model's tokenizer
};
extern struct truth truth;

// A party's statement about the run.
struct said {
    struct ree_arena arena;
    struct ree_trace trace; // owns its header and digests
    struct ree_receipt receipt;
    struct ree_stated_run stated_run;
    int32_t *output; // the output tokens; receipt.output.tokens points to them
    bool keeps_text; // seal() keeps the receipt's output text even if it contradicts the tokens
    // If true, the party's record of node misread_node in step misread_step contains `misread` as
    // the digest of the node's input 0, which contradicts the trace.
    bool misreads;
    uint64_t misread_step;
    uint32_t misread_node;
    ree_digest misread;
};

// Initializes s with the true run, with capacity for twice its steps and tokens.
void said_init(struct said *s);
void said_finish(struct said *s);
// Returns the digests of a step; they belong to s.
ree_digest *step_of(struct said *s, uint64_t step);
// Writes the digests of the inputs and outputs of a node in a step: at most MOST each.
void record_of(const struct said *s, uint64_t step, uint32_t node, ree_digest *inputs,
               ree_digest *outputs);
// Writes the leaves of the nodes of a step (n_nodes digests) to nodes and the step's leaf to out.
void leaves_of(const struct said *s, uint64_t step, ree_digest *nodes, ree_digest out);
// Recomputes everything that follows from the changed values: the tree, the root and the receipt.
void seal(struct said *s);

// A party that answers from a statement. The statement is borrowed and must outlive the party.
struct teller {
    struct ree_party base;
    const struct said *said;
    ree_digest *steps, *nodes;
    // asked: questions so far. leaves_at: 1-based index of the question that it fails to answer;
    // 0: none.
    uint64_t asked, leaves_at;
    uint64_t bends_at; // 1-based index of the answer in which it alters a digest; 0: none
};

void teller_init(struct teller *t, const struct said *s);
void teller_finish(struct teller *t);

// A lie changes a statement. The caller must call seal() after it.
struct lie {
    const char *name;
    void (*tell)(struct said *said);
    int times; // number of times that a test tells it, each time about a different value
};
extern const struct lie lies[];
extern const size_t n_lies;
// Changes of a receipt's form that do not change its run. If a dispute took two forms of one run
// for two runs, a liar could escape with such a change. The caller must call seal() after a change.
struct form {
    const char *name;
    void (*change)(struct said *said);
    bool is_lie; // the changed receipt contradicts the run or the model
};
extern const struct form forms[];
extern const size_t n_forms;
uint64_t some_step(const struct said *s);
void lie_cache(struct said *s);
void lie_output(struct said *s);
void lie_misread(struct said *s);
void lie_header(struct said *s);
void lie_fewer_nodes(struct said *s);
void lie_early_end(struct said *s);

// liars_court.c

void hold_dispute(const struct said *const sides[2], struct teller tellers[2],
                  struct ree_dispute *out);
// Returns the claim encoded and decoded again, as a reader of its file sees it. Destroy it.
struct ree_claim *read_claim_again(const struct ree_claim *claim);
// sides may be NULL: the referee then does not have the parties' receipts.
enum ree_status rule_on(const struct ree_claim *claim, const struct said *const sides[2],
                        struct ree_ruling *out, struct ree_error *err);
// Checks that the referee names the party `liar` and only that party. Counts in n_named and
// n_disputes.
void check_named(const char *lie, const struct ree_dispute *d, const struct said *const sides[2],
                 unsigned liar);
extern unsigned n_named, n_disputes[16]; // n_disputes is indexed by enum ree_dispute_kind

// liars_ends.c, liars_claims.c

void test_ends(void);
void test_ignored(void);
void test_claims_about_anything(void);
void test_claims_about_nodes(void);
void test_altered_claims(void);
void test_two_named(void);

#endif
