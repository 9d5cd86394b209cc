/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the SDP for the other side, with the addresses, ports and keys of the relay. */
#ifndef OFFER_EDIT_H
#define OFFER_EDIT_H

#include "call/plan.h"

/* The session description for the side plan.to, once all ports are taken. s = NULL without memory.
 */
struct str edit_write(
	struct plan *plan, struct call *next, const struct neg_in *in, bool is_answer);

#endif
