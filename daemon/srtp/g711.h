/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conversion between the two laws of ITU-T G.711 (11/1988), byte by byte: tables 3 and 4 of the
 * standard. The reference that engines are tested against, as srtp/ref.h. Pure. */
#ifndef SRTP_G711_H
#define SRTP_G711_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

uint8_t g711_ulaw_to_alaw(uint8_t u);
uint8_t g711_alaw_to_ulaw(uint8_t a);
/* Converts len bytes in place. law: XC_LAW_*. */
void g711_convert(uint8_t *p, size_t len, uint32_t law);

#endif
