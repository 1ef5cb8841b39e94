// Which of a device's primitives a node depends on: where two devices differ, those that one of
// them does not compute natively are looked at first.
#ifndef REE_AUDIT_SUSPECTS_H
#define REE_AUDIT_SUSPECTS_H

#include "graph/ir.h"
#include "repops/repop.h"

// The RepOps that a node was lowered to in a session's latest run: a bit for each. 0 where that
// run was not measured (ree_session_measure) or nothing was sent to the device.
uint32_t ree_suspects_repops(const struct ree_session *session, const struct ree_node *node);
// Calls `each` for every primitive (ree_device_facts) that such RepOps may use and the device does
// not compute natively.
void ree_suspects_find(const struct ree_device *device, uint32_t repops,
                       void (*each)(void *user, const struct ree_device_fact *fact), void *user);

#endif
