/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_tls.so: each process of Kamailio gets OpenSSL's state of a thread for itself. With the
 * parameter resume, all processes share TLS sessions. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <core/dprint.h>
#include <core/sr_module.h>
#include <core/tcp_conn.h>
#include <core/tls_hooks.h>

#include "names.h"
#include "own.h"
#include "sessions.h"

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

static int resume, verify_name;
static struct tls_hooks stock; /* the functions of tls.so */

/* Before a read or write. The first one of a connection creates its object of OpenSSL. name: of the
 * server, if it is known. */
static void begin(const struct tcp_connection *c, const char *name)
{
	bool client = !(c->flags & F_CONN_PASSIVE);
	const struct ip_addr *ip = client ? &c->rcv.src_ip : &c->rcv.dst_ip;
	unsigned short port = client ? c->rcv.src_port : c->rcv.dst_port;
	unsigned char server[sizeof(ip->u) + sizeof(port)];

	if (c->extra_data)
		return;
	memcpy(server, &ip->u, ip->len);
	memcpy(server + ip->len, &port, sizeof(port));
	sessions_begin(server, ip->len + sizeof(port), client, name);
}

static void end(const struct tcp_connection *c)
{
	sessions_end();
	sessions_learn(c->extra_data);
}

static int on_read(struct tcp_connection *c, rd_conn_flags_t *flags)
{
	int n;

	begin(c, NULL);
	n = stock.read(c, flags);
	end(c);
	return n;
}

static int on_encode(struct tcp_connection *c, const char **buf, unsigned *len, const char **rest,
	unsigned *rest_len, snd_flags_t *flags)
{
	struct hop to = {.name = ""};
	int n;

	if (verify_name)
		names_hop(&to, *buf, *len);
	/* An open connection to the address may be with somebody else: DNS gives two names the same
	 * address, or a client has connected from it. Requests within a dialog go to whom the
	 * dialog began with. */
	if (c->extra_data && to.initial && to.name[0] &&
		!sessions_peer_is(c->extra_data, to.name)) {
		LM_WARN("a request for %s is not sent to %s: its certificate has another name\n",
			to.name, ip_addr2a((struct ip_addr *)(uintptr_t)&c->rcv.src_ip));
		return -1;
	}
	begin(c, to.name[0] ? to.name : NULL);
	n = stock.encode(c, buf, len, rest, rest_len, flags);
	end(c);
	return n;
}

/* tls.so registered its functions when it was loaded. */
static int init(void)
{
	if (!resume && !verify_name)
		return 0;
	if (!resume) {
		LM_ERR("verify_name needs resume\n");
		return -1;
	}
	if (!tls_hook.read || !tls_hook.encode) {
		LM_ERR("resume needs tls.so and enable_tls=yes\n");
		return -1;
	}
	if (!sessions_init()) {
		LM_ERR("no memory for TLS sessions\n");
		return -1;
	}
	sessions_verify_name(verify_name);
	stock = tls_hook;
	tls_hook.read = on_read;
	tls_hook.encode = on_encode;
	return 0;
}

static param_export_t params[] = {
	{"resume", PARAM_INT, &resume},
	{"verify_name", PARAM_INT, &verify_name},
	{0},
};

struct module_exports exports = {
	.name = "xcipher_tls",
	.params = params,
	.init_mod_f = init,
	.dlflags = DEFAULT_DLFLAGS,
};
