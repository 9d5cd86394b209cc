/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roots that MIKEY trusts, with revocation lists. Constant once loaded, so any thread may read
 * them. */
#ifndef KEYING_MIKEY_TRUST_H
#define KEYING_MIKEY_TRUST_H

#include "base/bytes.h"

struct mikey_trust; /* roots and revocation lists */

/* roots: PEM certificates. crls: PEM revocation lists, or STR_NONE. With lists, every certificate
 * of a chain needs a valid list of its issuer. 0, -EBADMSG (no certificate, crls without a list, or
 * a damaged part), -ENOMEM. */
int mikey_trust_load(struct mikey_trust **out, struct str roots, struct str crls);
void mikey_trust_free(struct mikey_trust *t); /* NULL is fine */

#endif
