/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scratch of a burst between prepare and complete. */
#ifndef MEDIA_LANE_H
#define MEDIA_LANE_H

#include "media/state.h"

/* Selects the scratch of this burst. */
void media_lane_use(struct media *m, uint64_t burst);

#endif
