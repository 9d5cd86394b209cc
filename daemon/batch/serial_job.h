/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of the serial engine: processes one packet of any suite by OpenSSL's libcrypto. */
#ifndef BATCH_SERIAL_JOB_H
#define BATCH_SERIAL_JOB_H

#include <openssl/evp.h>

#include "packet/arena.h"

/* Contexts of libcrypto for a key slot. */
struct serial_key {
	EVP_CIPHER_CTX *ctx;  /* GCM: the mode itself; CM, F8: blocks; NULL cipher: none */
	EVP_CIPHER_CTX *mask; /* F8: single blocks under k_e XOR m */
	bool ready;           /* the slot can be used */
	bool quick;           /* quick.h supports the key */
};

/* True: the packet is authentic, and its result was written. The caller has checked that both keys
 * are ready and that the packet fits its slots. */
bool serial_job_run(const struct arena *a, const struct serial_key *key, const struct xc_job *job);

#endif
