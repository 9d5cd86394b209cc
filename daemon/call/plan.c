/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Warnings, notices and errors of a plan. Pure. */
#include "call/plan.h"

void plan_warn(struct plan *plan, struct pool *p, struct str text)
{
	if (!text.len)
		return;
	plan->warning = plan->warning.len
		? pool_printf(p, STR_FMT "; " STR_FMT, STR_ARG(plan->warning), STR_ARG(text))
		: text;
}

void plan_note(struct plan *plan, struct pool *p, struct str text)
{
	plan->notice = plan->notice.len
		? pool_printf(p, STR_FMT "; " STR_FMT, STR_ARG(plan->notice), STR_ARG(text))
		: text;
	plan_warn(plan, p, text);
}

void plan_fail(struct plan *plan, const char *reason, struct str detail)
{
	plan->error = reason;
	plan->detail = detail;
}

struct str plan_media_name(struct pool *p, uint32_t i, const char *what)
{
	return pool_printf(p, "media %u%s%s", (unsigned)i + 1, *what ? ": " : "", what);
}
