// Proves from a language model's graph that the model is causal. The proof uses operators,
// attributes and data flow. It never uses names, metadata or sampled runs.
//
// The property. A run computes S new tokens, at positions P, P + 1, ..., P + S - 1, after P tokens
// whose keys and values a cache holds. Without a cache P is 0. The model is causal if for each
// position p there is one function F of p and of the tokens 0 ... p, such that in every run that
// contains p, for every P and S, each logit of the row of p
//
//     is F, or is NaN.
//
// Why this suffices. A row without a NaN has the same bits whether tokens are computed one by one
// or in one pass. A row with a NaN chooses no token (NUMERICS.md, "Sampling"). So if one pass
// over a text chooses the text's own tokens, generating token by token gives the same text.
//
// Why NaN is allowed. The sums of NUMERICS.md have a term for later keys: a weight of +0 times a
// value, which is NaN if the value is infinite. This NaN depends on a later token, so it must not
// become a number again. Operators that could turn it into a number (comparisons, casts to
// integers, Pow, ...) are not proved if their input may have such a NaN.
//
// Method. A fact about each value states what its axes are (a known size, the new tokens, all
// tokens), and along which axes its elements depend on tokens. The number of tokens differs from
// run to run. It may only become a shape, a range of positions, or a length that a rule expects.
// Every rule describes what ree's own lowering of the operator computes. An operator without a rule
// is not proved.
#ifndef REE_GRAPH_CAUSALITY_PROVE_H
#define REE_GRAPH_CAUSALITY_PROVE_H

#include "graph/causality/question.h"

// Tries to prove that the model is causal. *out is "" if it is proved, otherwise the reason why not
// ("node 'x' (Op): ..."), of at most `size` bytes. Fails only without memory; *out is then
// meaningless.
enum ree_status ree_causality_prove(const struct ree_causality_question *question, char *out,
                                    size_t size, struct ree_error *err);

#endif
