/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by sdp.c and sdp_write.c only. */
#ifndef PROTO_SDP_WORDS_H
#define PROTO_SDP_WORDS_H

#include "base/bytes.h"

/* The next word, blanks before it skipped; a slice of *rest. Empty at the end. */
struct str sdp_word(struct str *rest);

#endif
