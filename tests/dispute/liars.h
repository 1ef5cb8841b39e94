// Shared by the tests of lying parties: the true run of the sample model, a party's statement about
// that run, a party that answers a dispute's questions from its statement, and the lies.
#ifndef REE_TESTS_DISPUTE_LIARS_H
#define REE_TESTS_DISPUTE_LIARS_H

#include "dispute/dispute.h"
#include "trace/model_header.h"
#include "dispute/referee.h"
#include "dispute/tree.h"

#define MOST 64 // maximum number of inputs or of outputs of a node

// Random numbers, the same sequence each time the test program starts. draw returns a number less
// than `below`. draw_digest writes a random digest, which is the digest of no value.
uint64_t draw(uint64_t below);
void draw_digest(ree_digest out);

// The true run that all lies are about. main in liars.c fills it in.
struct truth {
    const char *model, *values;
    char receipt_path[4096];
    // The opened model. The referee decides every claim with it, except claims about a node: these
    // would consume its graph, so the referee then opens the model again.
    struct ree_opened opened;
    struct ree_rules rules;
    struct ree_trace *trace;
    struct ree_tokenizer *tokenizer; // the model's tokenizer
    bool is_short;                   // fewer random lies: for slow builds
};
extern struct truth truth;

// Number of repetitions of a test with random lies that usually has n; at least 1.
int repeated(int n);

// A party's statement about the run: a trace, and a receipt with the trace's root.
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

// Initializes s as a true statement, with capacity for twice the true run's steps and tokens.
void said_init(struct said *s);
void said_finish(struct said *s);
// Returns the digests in s of a step's values, inputs first: trace.header.n_step_digests of them.
// They are borrowed from s; changing them changes the statement.
ree_digest *step_of(struct said *s, uint64_t step);
// Writes the digests that s states for the inputs and outputs of a node in a step. Each array must
// have capacity for MOST digests.
void record_of(const struct said *s, uint64_t step, uint32_t node, ree_digest *inputs,
               ree_digest *outputs);
// Computes the leaves of the trace's hash tree for a step of s. Writes the leaves of the step's
// nodes to `nodes` (trace.header.n_nodes digests) and the leaf of the step itself to `out`.
void leaves_of(const struct said *s, uint64_t step, ree_digest *nodes, ree_digest out);
// Makes a changed statement consistent: recomputes the trace's root and the receipt's texts and
// hashes, which follow from the changed values.
void seal(struct said *s);

// A party that answers from a statement. The statement is borrowed and must outlive the party.
struct teller {
    struct ree_party base;
    const struct said *said;
    ree_digest *steps, *nodes;
    // asked: number of questions received so far. leaves_at: 1-based index of the question that the
    // party does not answer; 0: none.
    uint64_t asked, leaves_at;
    uint64_t bends_at; // 1-based index of the answer in which one bit is wrong; 0: none
};

void teller_init(struct teller *t, const struct said *s);
void teller_finish(struct teller *t);

// A lie changes a statement. The caller must call seal() after it.
struct lie {
    const char *name;
    void (*tell)(struct said *said);
    int times; // number of times that test_lies tells the lie, about random values
};
extern const struct lie lies[];
extern const size_t n_lies;
// A form changes how a receipt describes the run (for example its eos tokens or its version), but
// not the run. A dispute must not take two forms of one run for two runs: a liar could then escape
// by changing the form. The caller must call seal() after a change.
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
// Encodes the claim and decodes the result, as a reader of the claim's file does. Returns the
// decoded claim, which the caller must release with ree_claim_destroy; NULL if decoding fails.
struct ree_claim *read_claim_again(const struct ree_claim *claim);
// Lets the referee decide the claim and returns the referee's status. sides: the two parties'
// statements, whose receipts the referee gets; NULL: the referee gets no receipts.
enum ree_status rule_on(const struct ree_claim *claim, const struct said *const sides[2],
                        struct ree_ruling *out, struct ree_error *err);
// Checks that dispute d ended with a claim, and that the referee names party `liar` (0 or 1) and
// not the other party. `lie` names the lie in messages. Counts d in n_disputes, and in n_named if
// the liar is named.
void check_named(const char *lie, const struct ree_dispute *d, const struct said *const sides[2],
                 unsigned liar);
// Numbers of disputes, counted by check_named: those in which the liar was named, and all, by kind
// (enum ree_dispute_kind).
extern unsigned n_named, n_disputes[16];

// liars_ends.c, liars_claims.c

void test_ends(void);
void test_ignored(void);
void test_claims_about_anything(void);
void test_claims_about_nodes(void);
void test_altered_claims(void);
void test_two_named(void);

#endif
