/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reply for people: an indented outline, lists of plain values on one line. */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include <stdio.h>
#include "proto/ngval.h"

/* Control characters, C1 and what is no UTF-8 are written as \\xHH: they would be commands to the terminal. */
void print_text(FILE *to, struct str s);
void print_tree(FILE *to, const struct ngval *v);
void print_json(FILE *to, const struct ngval *v);

#endif
