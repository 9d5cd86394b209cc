/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints a reply for people: an indented outline, lists of plain values on one line. */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include <stdio.h>
#include "proto/ngval.h"

/* Writes control characters, C1, bidirectional controls and invalid UTF-8 as \\xHH, because a
 * terminal could execute them. */
void print_text(FILE *to, struct str s);
void print_tree(FILE *to, const struct ngval *v);
void print_json(FILE *to, const struct ngval *v);

/* Complains on stderr that the daemon refused a command. */
void print_refusal(const char *command, struct str result, struct str reason);

#endif
