/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts of ng_errors.h. */
#include "proto/ng_errors.h"

#define X(id, text, todo) const char NGE_##id[] = text;
NG_ERRORS(X)
#undef X
