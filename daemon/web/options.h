/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of xcipher-web: long options on the command line, which are also the keys of an ini file,
 * section [xcipher-web]. --help, the parser and the check of the man page come from this table. */
#ifndef WEB_OPTIONS_H
#define WEB_OPTIONS_H

#include "base/endpoint.h"

/* X(name, field, default, argument, help) */
/* clang-format off */
#define WEB_OPTIONS(X) \
	X("config-file", config_file, "/etc/xcipher/xcipher-web.conf", "FILE|none", \
		"options from an ini file, section [xcipher-web]") \
	X("daemon", daemon, "/run/xcipher/ng", "PATH", \
		"Unix socket on which xcipherd listens (its listen-ng-unix)") \
	X("listen-http", listen_http, "127.0.0.1:2226", "ADDR:PORT", \
		"serves the page, metrics, and ng commands by HTTP POST and WebSocket") \
	X("http-token-file", http_token_file, "", "FILE", \
		"HTTP clients must know the token in its first line") \
	X("http-host", http_hosts, "", "NAME,...", \
		"names that the server may be reached by, besides addresses and our own") \
	X("log-level", log_level, "6", "0..7", \
		"3 errors, 4 warnings, 6 information, 7 debugging") \
	X("log-stderr", log_stderr, "no", "yes|no", \
		"log to standard error instead of syslog")
/* clang-format on */

struct web_options {
#define X(name, field, def, arg, help) char *field;
	WEB_OPTIONS(X)
#undef X
	struct endpoint listen;
	int level;
	bool to_stderr;
};

enum web_options_result { WEB_OPTIONS_RUN, WEB_OPTIONS_EXIT_OK, WEB_OPTIONS_EXIT_ERROR };

/* Reads the defaults, then the file, then the command line. An error prints one line with cause and
 * remedy. */
enum web_options_result web_options_read(struct web_options *o, int argc, char **argv);
void web_options_free(struct web_options *o);

#endif
