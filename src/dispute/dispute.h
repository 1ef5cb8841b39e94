// The protocol of a dispute about a run. ree_dispute_hold (ree/audit.h, dispute/hold.c) derives its
// terms and afterwards names the wrong party.
//
// Two parties are committed to different roots. Each is asked for digests until the first node that
// differs is found. The search first bisects the tree of steps to find the first step that differs,
// and then the inputs and nodes of that step in the same way. Each answer must hash to what the
// party stated before, so a party that invents an answer is named at once. A party that does not
// answer is also named. A dispute takes O(log steps + log nodes) messages of a few digests, and one
// more question to each party for each input of the node that is not a constant.
//
// The inputs of a step follow from the previous step, from the model and from the receipts
// (dispute/rules.h). With these rules every dispute ends with a claim (dispute/claim.h) that a
// referee can decide, or with the name of a party.
//
// The idea is from "Verde: Verification via Refereed Delegation for Machine Learning Programs"
// (2025).
#ifndef REE_DISPUTE_DISPUTE_H
#define REE_DISPUTE_DISPUTE_H

#include "dispute/claim.h"
#include "dispute/party.h"
#include "dispute/rules.h"

// Reasons for LIED that do not follow from an answer.
#define REE_DISPUTE_NO_SALT                                                                        \
    "it withholds the salt of its private receipt, which is required to check its root"
#define REE_DISPUTE_OTHER_ROOT "its root is not the root in its receipt"

// The result of a dispute. The kinds LIED and SILENT rest only on the word of whoever asked the
// questions: answers are not signed, so the transcript proves nothing to others. All other kinds
// that name a party rest on a claim, which anyone can check against the roots.
struct ree_dispute {
    enum ree_dispute_kind kind;
    uint64_t n_steps[2]; // number of steps that each party states for its trace
    // Disputes of kind INPUT, NODE or TOKEN: index of the disputed step. Kind LENGTH: number of
    // steps that agree; 0 if a receipt contradicts its trace's number of steps.
    uint64_t step;
    uint32_t input, node;
    // Set for the kinds NODE, HEADER and TOKEN; for INPUT if the terms have rules; for LENGTH if
    // they have rules or a receipt contradicts its trace's number of steps. Otherwise NULL. Owned.
    struct ree_claim *claim;
    // Disputes of kind LIED or SILENT: the party that is named; 0: A, 1: B.
    unsigned liar;
    // Disputes of kind LIED or SILENT: what was wrong, for people to read.
    char lie[160];
    // Number of all questions and answers; bytes of their JSON.
    uint64_t n_messages, n_bytes;
};

// What the parties are held to. All pointers are borrowed.
struct ree_dispute_terms {
    const struct ree_trace_header *header; // the header that both traces should have
    bool is_model;                         // `header` was made from the model
    const struct ree_rules *rules;         // rules for the model's inputs; NULL: not known
    // The runs that both receipts state, which ree_stated_run_compare must accept; both NULL: there
    // are no receipts.
    const struct ree_stated_run *runs[2];
    // The traces are of trainings, whose receipts have passed ree_training_terms_check; `runs` are
    // NULL then. NULL: of other runs.
    const struct ree_training_terms *training;
};

// Holds a dispute. `transcript` (may be NULL) receives every message as a line of JSON. Fails with
// REE_NO_MEMORY, or with REE_INVALID if the receipts state different input tensors and neither
// party contradicts itself. Release *out with ree_dispute_finish.
enum ree_status ree_dispute(const struct ree_dispute_terms *terms,
                            struct ree_party *const parties[2], struct ree_strbuf *transcript,
                            struct ree_dispute *out, struct ree_error *err);
// Turns the dispute into one of the kind SILENT that names party k, and destroys its claim. To be
// called if deciding the claim requires tokens that party k withholds (ree_ruling.is_withheld).
enum ree_status ree_dispute_withheld(struct ree_dispute *dispute, unsigned k,
                                     struct ree_strbuf *transcript, struct ree_error *err);
void ree_dispute_finish(struct ree_dispute *dispute);

// Encodes a message as a line of JSON: the question to a party ("A", "B") or, if `reply` is not
// NULL, the party's answer.
enum ree_status ree_message_encode(const char *party, const struct ree_query *query,
                                   const struct ree_reply *reply, struct ree_strbuf *out,
                                   struct ree_error *err);
// Encodes the last line of the transcript of a dispute of the kind LIED or SILENT. It names the
// party ("A", "B") and states that the transcript does not prove it.
enum ree_status ree_message_encode_name(const char *party, const struct ree_dispute *dispute,
                                        struct ree_strbuf *out, struct ree_error *err);

#endif
