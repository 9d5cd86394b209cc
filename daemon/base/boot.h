/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BASE_BOOT_H
#define BASE_BOOT_H

#include <stdint.h>

/* A number derived from the machine's boot ID, which differs for each boot and each machine. 0: not
 * known. Reads a file; call it rarely. */
uint64_t boot_number(void);

#endif
