/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CTL_ENGINE_H
#define CTL_ENGINE_H

#include "proto/ngval.h"

/* The engines' part of a reply to "statistics", as JSON or for people. False after a complaint. */
bool engine_show(struct pool *p, const struct ngval *reply, bool json);

#endif
