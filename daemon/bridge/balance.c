/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the worker of a new call (bridge/balance.h). A call keeps its worker and may need more
 * ports later, so a worker is filled to half at most. Called for each call by bridge/bridge.c. */
#include "bridge/balance.h"

static bool takes_more(const struct balance *w)
{
	return w->ports < PLACE_TOGETHER && w->ports < w->room / 2 && w->busy < PLACE_BUSY &&
		!w->behind;
}

static bool has_less(const struct balance *w, const struct balance *than)
{
	return w->behind != than->behind ? than->behind : w->ports < than->ports;
}

uint32_t balance_call(const struct balance *w, uint32_t n, bool spread)
{
	uint32_t fullest = n, emptiest = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (takes_more(&w[i]) && (fullest == n || w[i].ports > w[fullest].ports))
			fullest = i;
		if (has_less(&w[i], &w[emptiest]))
			emptiest = i;
	}
	return spread || fullest == n ? emptiest : fullest;
}
