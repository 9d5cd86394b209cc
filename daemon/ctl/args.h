/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of xcipherctl: its options, command and arguments. */
#ifndef CTL_ARGS_H
#define CTL_ARGS_H

#include "base/endpoint.h"
#include "proto/ng_auth.h"

enum { EXIT_DAEMON = 1, EXIT_USAGE = 2, EXIT_ANSWER = 3 };

struct args {
	struct endpoint server;
	struct ng_keys *keys; /* in secure memory; NULL: requests are not signed */
	unsigned timeout;
	bool json;
	unsigned watch_ms; /* 0: once */
	const char *call_id, *from_tag, *to_tag, *via_branch, *sdp, *flags, *limit;
	char filter[512]; /* words of the daemon's filter (call/find.h) */
	const char *sort;
	bool all, yes;
	void (*help)(void); /* prints commands and options, for --help */
	/* The arguments after the command, without the Call-ID. */
	char *const *word;
	int words;
};

/* Complains, and returns EXIT_USAGE. arg may be NULL. */
int usage(const char *what, const char *arg);

/* Reports that the server did not answer, err as from client_call(). Returns EXIT_ANSWER. */
int no_answer(const struct args *a, int err);

/* Reads the options. 0, or the exit status after a complaint; --help and --version exit. */
int args_read(struct args *a, int argc, char **argv);
/* Prints the options. */
void args_help(void);

#endif
