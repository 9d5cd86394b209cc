/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench: one sub-command per measurement. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"cipher", "nanoseconds per packet of our engines and of other implementations",
		bench_cipher},
	{"codec", "microseconds per packet of each audio codec, and streams per core", bench_codec},
	{"gpu", "an OpenCL device with memory of its own: data resident, transfers, floors",
		bench_gpu},
	{"dtls", "DTLS-SRTP handshakes per second, and memory per association", bench_dtls},
	{"ice", "nanoseconds per STUN packet of the ICE agent", bench_ice},
	{"mikey", "MIKEY exchanges per second, compared with the primitives of OpenSSL",
		bench_mikey},
	{"path", "the whole worker loop on packets from memory", bench_path},
	{"preauth", "nanoseconds per tag of SRTP+, compared with SRTP's own check", bench_preauth},
	{"zrtp", "ZRTP exchanges per second, compared with key agreements alone", bench_zrtp},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	fprintf(argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
		"usage: xcipher-bench COMMAND [OPTION...]   (COMMAND --help lists its options)\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].help);
	return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}
