// Descriptions that ranks exchange before a run, and how rank 0 compares them. A description is
// text with lines "name\tvalue\n"; names are phrased for messages such as "rank 1 has NAME VALUE,
// but rank 0 has VALUE".
#ifndef REE_TRANSPORT_AGREEMENT_H
#define REE_TRANSPORT_AGREEMENT_H

#include "base/strbuf.h"
#include "transport/frame.h"

// Fails with REE_INVALID, and names the first difference, unless the description of rank `rank` is
// equal to rank 0's own one.
enum ree_status ree_agreement_compare(uint32_t rank, const struct ree_strbuf *own,
                                      const struct ree_part *other, struct ree_error *err);

#endif
