/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the indexes of a key while no context uses it (RFC 3711 9.1). */
#ifndef MEDIA_LEDGER_H
#define MEDIA_LEDGER_H

#include "media/state.h"

/* CTX_SET: whether these sending keys may be used with indexes that start again. */
bool media_ledger_allows(const struct media *m, const struct media_crypto *tx);

/* CTX_SET, before the tables change: stores the indexes of the keys that leave this direction. */
void media_ledger_leave(
	struct media *m, struct media_ctx *c, bool tx, const struct media_crypto *next, bool all);

/* CTX_SET, after the tables were reset: restores the indexes of the keys in now. prev: keys that
 * were in force, NULL = none. */
void media_ledger_join(struct media *m, struct media_ctx *c, bool tx,
	const struct media_crypto *prev, const struct media_crypto *now);

/* The slot has a new key or none: forgets the indexes of the previous one. */
void media_ledger_forget(struct media *m, uint32_t slot);

#endif
