/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of keying.c. */
#ifndef KEYING_ROWS_H
#define KEYING_ROWS_H

#include "keying/keying.h"

extern const struct keying_ops keying_pass, keying_dtls, keying_zrtp, keying_mikey, keying_sdes;

#endif
