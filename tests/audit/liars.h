// What the tests of lying parties share: a run of the sample model as it was, what a party says of
// it, the party that answers a dispute's questions by that, and the lies.
#ifndef REE_TESTS_AUDIT_LIARS_H
#define REE_TESTS_AUDIT_LIARS_H

#include "audit/dispute.h"
#include "audit/header.h"
#include "audit/referee.h"
#include "audit/tree.h"

#define MOST 64 // inputs or outputs of a node

// Random numbers, the same in every run: below `below`; a digest of nothing.
uint64_t draw(uint64_t below);
void draw_digest(ree_digest out);

// What is true. The test sets it.
struct truth {
    const char *model, *values;
    char receipt_path[4096];
    struct ree_opened opened; // for claims that leave its graph as it is
    struct ree_rules rules;
    struct ree_trace *trace;
    struct ree_tokenizer *tokenizer; // of the model
};
extern struct truth truth;

// What a party says.
struct said {
    struct ree_arena arena;
    struct ree_trace trace; // header and digests are its own
    struct ree_receipt receipt;
    struct ree_told told;
    int32_t *output; // tokens
    bool keeps_text; // of the answer, whatever its tokens say
    // A record of a node that says that it read something else.
    bool misreads;
    uint64_t misread_step;
    uint32_t misread_node;
    ree_digest misread;
};

// The truth, with room for twice the steps and tokens.
void said_init(struct said *s);
void said_finish(struct said *s);
// The digests of a step.
ree_digest *step_of(struct said *s, uint64_t step);
// What a node of a step read and made: at most MOST each.
void record_of(const struct said *s, uint64_t step, uint32_t node, ree_digest *inputs,
               ree_digest *outputs);
// Leaves of the nodes of a step (n_nodes); returns that of the step.
void leaves_of(const struct said *s, uint64_t step, ree_digest *nodes, ree_digest out);
// Makes everything above what was made up follow from it: the tree, the root, the receipt.
void seal(struct said *s);

// A party that answers by what it says, which has to outlive it.
struct teller {
    struct ree_party base;
    const struct said *said;
    ree_digest *steps, *nodes;
    uint64_t asked, leaves_at; // it stops answering at this question; 0: never
    uint64_t bends_at;         // it alters a digest of this answer; 0: never
};

void teller_init(struct teller *t, const struct said *s);
void teller_finish(struct teller *t);

// A lie changes what is said; seal() comes after it.
struct lie {
    const char *name;
    void (*tell)(struct said *said);
    int times; // how often a test tells it, about something else each time
};
extern const struct lie lies[];
extern const size_t n_lies;
// Other forms of a receipt that leave its run as it is: a way out of a dispute, if what differs in
// form made two runs of one. seal() comes after it.
struct form {
    const char *name;
    void (*change)(struct said *said);
    bool is_lie; // it contradicts the run or the model by itself
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
// A claim as whoever gets its file has it.
struct ree_claim *read_claim_again(const struct ree_claim *claim);
// sides: NULL, the referee does not have their receipts.
enum ree_status rule_on(const struct ree_claim *claim, const struct said *const sides[2],
                        struct ree_ruling *out, struct ree_error *err);
// The referee names the party `liar`, and not the other one; counts in n_named and n_disputes.
void check_named(const char *lie, const struct ree_dispute *d, const struct said *const sides[2],
                 unsigned liar);
extern unsigned n_named, n_disputes[16]; // the latter by enum ree_dispute_kind

// liars_ends.c, liars_claims.c

void test_ends(void);
void test_ignored(void);
void test_claims_about_anything(void);
void test_claims_about_nodes(void);
void test_altered_claims(void);
void test_two_named(void);

#endif
