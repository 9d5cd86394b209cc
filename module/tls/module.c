/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_tls.so: each process of Kamailio gets OpenSSL's state of a thread for itself. */
#include <pthread.h>

#include <core/dprint.h>
#include <core/sr_module.h>

#include "own.h"

MODULE_VERSION

static void in_child(void)
{
	if (own_values() < 0)
		LM_ERR("cannot read /proc/self/maps: TLS handshakes that coincide may end "
		       "Kamailio\n");
}

/* While it is loaded, and so before Kamailio starts any process. A handler of fork() reaches all of
 * them, also those that run no child_init(). */
int mod_register(char *path, int *dlflags, void *p1, void *p2);
int mod_register(char *path, int *dlflags, void *p1, void *p2)
{
	int err = pthread_atfork(NULL, NULL, in_child);

	(void)path;
	(void)dlflags;
	(void)p1;
	(void)p2;
	if (!err)
		return 0;
	LM_ERR("no handler for new processes: error %d\n", err);
	return -1;
}

struct module_exports exports = {
	.name = "xcipher_tls",
	.dlflags = DEFAULT_DLFLAGS,
};
