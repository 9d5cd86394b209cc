/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-web: serves the page, metrics and ng over HTTP for xcipherd, in a process without keys
 * and privileges. It drops all capabilities after the start. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/caps.h"
#include "base/log.h"
#include "base/secmem.h"
#include "web/options.h"
#include "web/web.h"

static struct lws_context *running; /* for the signal handler */
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	stopping = number;
	lws_cancel_service(running);
}

/* Keep the token, and SDP with keys, out of core dumps. */
static void drop_privileges(void)
{
	uint64_t permitted, inheritable;

	secmem_no_dumps();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (caps_limit(0) && (caps_get(&permitted, &inheritable) || permitted))
		log_warn("capabilities cannot be dropped");
}

/* Until a signal. False: libwebsockets failed. */
static bool serve(struct web *w, const struct web_options *o)
{
	struct sigaction action = {.sa_handler = on_signal};
	char text[ENDPOINT_STRLEN];

	running = w->context;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	log_info("xcipher-web " XCIPHER_VERSION " is ready: HTTP on %s, xcipherd at %s",
		endpoint_fmt(&o->listen, text), o->daemon);
	while (!stopping && lws_service(w->context, 0) >= 0)
		;
	if (stopping)
		log_info("signal %d: stopping", (int)stopping);
	else
		log_err("libwebsockets failed: ending, so that the service manager starts xcipher-web again");
	return stopping;
}

static int run(const struct web_options *o)
{
	const struct web_config cfg = {.listen = o->listen,
		.token_file = o->http_token_file,
		.hosts = o->http_hosts,
		.daemon = o->daemon};
	char err[512] = "out of memory";
	struct web *w = NULL;
	int ret;

	log_open("xcipher-web", o->level, o->to_stderr);
	if (!o->to_stderr || log_stderr_is_journal())
		(void)log_journal("/run/systemd/journal/socket");
	ret = web_create(&w, &cfg, err, sizeof(err));
	if (ret) {
		fprintf(stderr, "xcipher-web: %s\n", err);
		return 1;
	}
	drop_privileges();
	ret = serve(w, o) ? 0 : 1;
	web_destroy(w);
	return ret;
}

int main(int argc, char **argv)
{
	struct web_options o;
	int ret;

	switch (web_options_read(&o, argc, argv)) {
	case WEB_OPTIONS_RUN:
		ret = run(&o);
		break;
	case WEB_OPTIONS_EXIT_OK:
		ret = 0;
		break;
	default:
		ret = 1;
		break;
	}
	web_options_free(&o);
	return ret;
}
