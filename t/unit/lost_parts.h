/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pure files of module/lost. They are included, because the daemon's library does not contain
 * them. */
#ifndef LOST_PARTS_H
#define LOST_PARTS_H

#include "../../module/lost/answer.c"
#include "../../module/lost/ask.c"
#include "../../module/lost/buf.c"
#include "../../module/lost/cache.c"
#include "../../module/lost/geo.c"
#include "../../module/lost/message.c"
#include "../../module/lost/naptr.c"
#include "../../module/lost/place.c"
#include "../../module/lost/query.c"
#include "../../module/lost/reach.c"
#include "../../module/lost/sipbody.c"
#include "../../module/lost/trace.c"
#include "../../module/lost/xml.c"

#endif
