// Finds the device primitives that a node depends on. If two devices differ in a node, the
// primitives that one of them does not compute natively are the first suspects.
#ifndef REE_DISPUTE_SUSPECTS_H
#define REE_DISPUTE_SUSPECTS_H

#include "graph/ir/ir.h"
#include "repops/repop.h"

// Returns the RepOps that a node was lowered to in a session's latest run: bit 1 << op for each.
// Returns 0 if that run was not measured (ree_session_measure) or the node sent nothing to the
// device.
uint32_t ree_suspects_repops(const struct ree_session *session, const struct ree_node *node);
// Calls `each` for every primitive (ree_device_facts) that the RepOps of the bit mask `repops` may
// use and that the device does not compute natively.
void ree_suspects_find(const struct ree_device *device, uint32_t repops,
                       void (*each)(void *user, const struct ree_device_fact *fact), void *user);

#endif
