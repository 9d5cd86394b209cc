/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of --dtls-cert and --dtls-key. */
#ifndef APP_CERT_FILE_H
#define APP_CERT_FILE_H

#include "keying/dtls_cert.h"

/* Loads a certificate and its private key. key_path NULL: both are in one file. The file of the key
 * must be secret (base/secret_file.h). 0, or -errno with one line in err that names the option, the
 * file and what is wrong. Blocks, so use it only at start and reload. */
int cert_file_load(struct dtls_cert **out, const char *cert_path, const char *key_path, char *err,
	size_t err_len);

#endif
