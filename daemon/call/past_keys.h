/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the slots of keys that are not in force but may return. */
#ifndef CALL_PAST_KEYS_H
#define CALL_PAST_KEYS_H

#include "call/model.h"

#define LEG_SLOTS_MAX (SRTP_PARAMS_KEYS + RX_PAST + 3 + SUITE_COUNT + KEYING_MIKEY_KEYS)

/* Holds the slot of a terminal's key that left force. Replaces the oldest such key. */
void past_keys_push(struct leg *l, const struct srtp_master *m, uint32_t slot);
void past_keys_push_all(struct leg *l);

/* Removes a key that is in force again. */
void past_keys_remove(struct leg *l, uint32_t slot);

/* Stores the slot of our key in force with the key. */
void past_keys_ours(struct leg *l, const struct srtp_master *m, uint32_t slot);

/* All key slots that a leg holds, each once. Returns how many. */
uint32_t leg_slots(const struct leg *l, uint32_t out[LEG_SLOTS_MAX]);

#endif
