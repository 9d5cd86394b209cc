/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parties of a call by name, for people. ng carries tags only; a script may add names with the
 * key "metadata". Names come from strangers: show them as text. */
#ifndef CALL_NAMES_H
#define CALL_NAMES_H

#include "call/model.h"

struct names {
	struct str from, to; /* caller and callee; slices of the call, valid until it changes */
};

/* The value of a key in metadata of the form "from:alice|to:bob|...", as rtpengine's recording
 * daemon reads it. Empty: there is none. Pure. */
struct str names_value(struct str metadata, struct str key);
/* From "metadata" if a script gave it, else the label of the party, else its tag. */
void names_of(struct names *out, const struct call *c);

#endif
