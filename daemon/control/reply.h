/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes replies, and replaces those that are too long. A client that receives an error assumes
 * that nothing changed, so a command whose effect cannot be undone never gets an error for the
 * length of its reply. */
#ifndef CONTROL_REPLY_H
#define CONTROL_REPLY_H

#include "base/sbuf.h"
#include "proto/ng.h"
#include "proto/ngval.h"

#define REPLY_UNLIMITED (1u << 20) /* for buffers without a limit, see sbuf.h */

/* Appends to b. Errors stay in b. */
void reply_write(struct sbuf *b, const struct ngval *tree, enum ng_encoding enc);
/* Whether the reply fits into b. NULL does not fit. */
bool reply_fits(const struct sbuf *b, const struct ngval *tree, enum ng_encoding enc);
/* Both always fit, and need no memory. The reason follows from b's error. start: length of b to
 * keep. */
void reply_write_error(struct sbuf *b, size_t start, enum ng_encoding enc);
void reply_write_done(struct sbuf *b, size_t start, enum ng_encoding enc);

#endif
