/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec/g722_lanes.h"

const struct g722_lanes_ops *g722_lanes_here(void)
{
	if (g722_lanes_work(&g722_lanes_avx512))
		return &g722_lanes_avx512;
	return g722_lanes_work(&g722_lanes_avx2) ? &g722_lanes_avx2 : NULL;
}
