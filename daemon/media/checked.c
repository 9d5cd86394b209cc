/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "media/checked.h"

void media_checked_add(struct media *m, uint32_t stream, const struct endpoint *src)
{
	struct media_checked *c = &m->trial[stream].checked;
	uint32_t at = 0, serial = m->stream[stream].cfg.side_serial;

	if (c->serial != serial)
		*c = (struct media_checked){.serial = serial};
	while (at < MEDIA_CHECKED - 1 && !endpoint_eq(&c->of[at], src))
		at++;
	memmove(&c->of[1], &c->of[0], at * sizeof(c->of[0]));
	c->of[0] = *src;
}

bool media_checked(const struct media *m, uint32_t stream, const struct endpoint *src)
{
	const struct media_checked *c = &m->trial[stream].checked;

	if (c->serial != m->stream[stream].cfg.side_serial)
		return false;
	for (uint32_t i = 0; i < MEDIA_CHECKED; i++)
		if (c->of[i].family && endpoint_eq(&c->of[i], src))
			return true;
	return false;
}
