/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options: valid ones are accepted; an invalid one stops the start with one line that names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "app/options_int.h"

/* Calls options_read() and captures standard error. */
static enum options_result read_with(
	struct options *o, const char *const *args, char *said, size_t said_len)
{
	char *argv[12] = {(char *)"xcipherd"};
	FILE *f = tmpfile();
	int argc = 1, keep = dup(STDERR_FILENO);
	enum options_result res;
	size_t len;

	assert_non_null(f);
	while (args[argc - 1]) {
		argv[argc] = (char *)args[argc - 1];
		argc++;
	}
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	res = options_read(o, argc, argv);
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(f);
	len = fread(said, 1, said_len - 1, f);
	said[len] = 0;
	fclose(f);
	return res;
}

static void mistakes_are_named_in_one_line(void **state)
{
	static const struct {
		const char *args[4];
		const char *said;
	} T[] = {
		{{"--no-such-thing=1"}, "--no-such-thing"},
		{{"--port-min=80"}, "port from 1024"},
		{{"--port-min=x"}, "--port-min=x"},
		{{"--port-min=40000", "--port-max=30000"}, "too small"},
		{{"--workers=64", "--port-min=30000", "--port-max=30019"}, "too small"},
		{{"--steering=tcp"}, "expected: udp, nfqueue, kernel"},
		{{"--engine=cuda"}, "auto, opencl or serial"},
		{{"--codec-isolation=some"}, "foreign, all or none"},
		{{"--opencl-device=gpu:0"}, "weights from 1 to 1000"},
		{{"--opencl-device=gpu:x"}, "weights from 1 to 1000"},
		{{"--opencl-device=gpu,,cpu"}, "DEVICE[:WEIGHT],..."},
		{{"--opencl-device=0,1,2,3,4,5,6,7,8"}, "up to 8 devices"},
		{{"--opencl-min=1,x"}, "0 to 65535"},
		{{"--opencl-start-timeout=0"}, "1 to 65535 seconds"},
		{{"--opencl-min=1,2,3,4,5,6,7,8,9"}, "at most 8"},
		{{"--interface=0.0.0.0"}, "one address"},
		{{"--interface=a/"}, "[NAME/]ADDR"},
		{{"--interface=/192.0.2.1"}, "name of 1 to 31"},
		{{"--interface=192.0.2.1!x"}, "after the '!'"},
		{{"--interface=192.0.2.1!2001:db8::1"}, "same family"},
		{{"--listen-ng=22222"}, "ADDR:PORT"},
		{{"--listen-tcp-ng=on"}, "or off"},
		{{"--sdes-offer=ROT13"}, "suites as"},
		{{"--dtls-profiles=SRTP_NULL_HMAC_SHA1_80"}, "NULL profiles do not encrypt"},
		{{"--dtls-profiles=SRTP_AEAD_AES_128_GCM,AES_256_CM_HMAC_SHA1_80"},
			"one or more of SRTP_AEAD_AES_256_GCM"},
		{{"--dtls-profiles=,"}, "one or more of SRTP_AEAD_AES_256_GCM"},
		{{"--b2b-url=file:///etc/passwd"}, "--b2b-url is wrong"},
		{{"--xmlrpc-format=3"}, "0, 1 or 2"},
		{{"--worker-priority=100"}, "0 to 99"},
		{{"--b2b-allow=192.0.2.0/33"}, "networks as"},
		{{"--b2b-allow="}, "networks as"},
		{{"--sdes-offer=UNENCRYPTED_SRTP"}, "suites as"},
		{{"--sdes-accept=strong,KDR"}, "UNENCRYPTED_SRTP"},
		{{"--max-cpu=much"}, "as 80 or 7.5"},
		{{"--max-cpu=nan"}, "as 80 or 7.5"},
		{{"--max-cpu=100.5"}, "from 0 to 100, as"},
		{{"--max-load=100001"}, "from 0 to 100000, as"},
		{{"--max-load=-1"}, "as 80 or 7.5"},
		{{"--max-load=1x"}, "as 80 or 7.5"},
		{{"--max-bandwidth=10M"}, "a number"},
		{{"--overload-age=70000"}, "0 to 65535"},
		{{"--replay-window=100"}, "multiple of 64"},
		{{"--tos=256"}, "0 to 255"},
		{{"--log-level=8"}, "0 to 7"},
		{{"--batch-max=0"}, "batch-max"},
		{{"--strict-source=maybe"}, "yes or no"},
		{{"--max-medias=x"}, "1 to 64 m-lines"},
		{{"--max-medias=65"}, "1 to 64 m-lines"},
		{{"--max-medias=256"}, "1 to 64 m-lines"},
		{{"--emergency-ports=51"}, "0 to 50 percent"},
		{{"--worker-priority=300"}, "0 to 99"},
		{{"--replay-window=0"}, "multiple of 64"},
		{{"--replay-window=x"}, "multiple of 64"},
		{{"--replay-window=70000"}, "multiple of 64"},
		{{"--batch-max=x"}, "1 to 16384"},
		{{"--workers=65"}, "1 to 64"},
		{{"--batches-in-flight=9"}, "0 to 8"},
		{{"--xmlrpc-format=256"}, "0, 1 or 2"},
		{{"--redis-expires=0"}, "--redis-expires=0 is wrong, expected: 1 to"},
		{{"--media-allow=any"}, "not all addresses"},
		{{"--media-allow=0.0.0.0/0"}, "not all addresses"},
		{{"--media-allow=10.0.0.0/8,::/0"}, "not all addresses"},
		{{"--media-deny=none", "--media-deny=10.0.0.0/8"},
			"--media-deny=none,10.0.0.0/8 is wrong, expected: networks as"},
		{{"--media-deny=10.0.0.0/8", "--media-deny=any"}, "networks as"},
		{{"--interface="}, "[NAME/]ADDR"},
		{{"--interface=;"}, "[NAME/]ADDR"},
		{{"stray"}, "\"stray\""},
		{{"--config-file=/nonexistent/x.conf"}, "cannot read /nonexistent/x.conf"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct options o;
		char said[1024];

		assert_int_equal(read_with(&o, T[i].args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
		if (!strstr(said, T[i].said))
			fail_msg("%s: said \"%s\", should name \"%s\"", T[i].args[0], said,
				T[i].said);
		assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
		options_free(&o);
	}
}

static void file_and_command_line_agree_on_names(void **state)
{
	char path[] = "/tmp/xcipher-options-XXXXXX", arg[64], said[1024];
	const char *args[] = {arg, "--tos=46", NULL};
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct options o;

	(void)state;
	assert_non_null(f);
	fputs("[other]\nx = y\n[xcipher]\ninterface = in/192.0.2.1!198.51.100.1; out/2001:db8::1\ntos = 184\n"
	      "steering = nfqueue\nbatch-window = 500\nstrict-source = no\nworkers = 3\n",
		f);
	fclose(f);
	snprintf(arg, sizeof(arg), "--config-file=%s", path);
	assert_int_equal(read_with(&o, args, said, sizeof(said)), OPTIONS_RUN);
	unlink(path);
	assert_int_equal(o.locals, 2);
	assert_string_equal(o.local[0].name, "in");
	assert_int_equal(o.local[0].advertised.addr[0], 198);
	assert_string_equal(o.local[1].name, "out");
	assert_int_equal(o.local[1].addr.family, AF_INET6);
	assert_int_equal(o.tos, 46); /* the command line wins */
	assert_ptr_equal(o.steering, &steer_nfqueue);
	assert_int_equal(o.batch_window, 500);
	assert_false(o.strict_source);
	assert_int_equal(o.workers, 3);
	assert_int_equal(o.port_max, 39999); /* default */
	options_free(&o);
}

static void write_file(const char *path, const char *text);

/* An option without effect: the name of the file is empty, as in --ng-key-file=$UNSET. */
static void an_empty_text_is_an_error(void **state)
{
	static const char *const T[] = {"ng-key-file", "listen-ng-unix", "ng-unix-group",
		"xdp-interface", "templates", "b2b-url", "redis-password-file", "redis-tls-ca",
		"redis-tls-name", "redis-tls-cert", "redis-tls-key", "redis-key-file", "dtls-cert",
		"dtls-key", "recording-dir", "pidfile", "user", "group", "config-file"};
	char path[] = "/tmp/xcipher-options-XXXXXX", file[64], text[128], said[1024];

	(void)state;
	close(mkstemp(path));
	snprintf(file, sizeof(file), "--config-file=%s", path);
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int in_file = 0; in_file < 2; in_file++) {
			const char *args[] = {file, NULL, NULL};
			struct options o;

			if (in_file && strcmp(T[i], "config-file") == 0)
				continue;
			snprintf(text, sizeof(text), in_file ? "[xcipher]\n%s =\n" : "--%s=", T[i]);
			write_file(path, in_file ? text : "[xcipher]\n");
			args[1] = in_file ? NULL : text;
			assert_int_equal(
				read_with(&o, args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
			if (!strstr(said, T[i]) || !strstr(said, "leave the option out"))
				fail_msg("%s: %s", T[i], said);
			options_free(&o);
		}
	unlink(path);
}

/* Configurations of earlier versions use these options. One error names their new place. */
static void options_of_xcipher_web_name_it(void **state)
{
	static const char *const T[] = {"listen-http", "http-token-file", "http-host"};
	char path[] = "/tmp/xcipher-options-XXXXXX", file[64], text[128], said[1024];

	(void)state;
	close(mkstemp(path));
	snprintf(file, sizeof(file), "--config-file=%s", path);
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int in_file = 0; in_file < 2; in_file++) {
			const char *args[] = {file, NULL, NULL};
			struct options o;

			snprintf(text, sizeof(text), in_file ? "[xcipher]\n%s = x\n" : "--%s=x",
				T[i]);
			write_file(path, in_file ? text : "[xcipher]\n");
			args[1] = in_file ? NULL : text;
			assert_int_equal(
				read_with(&o, args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
			if (!strstr(said, T[i]) || !strstr(said, "xcipher-web(8)"))
				fail_msg("%s: %s", T[i], said);
			options_free(&o);
		}
	unlink(path);
}

static void expect_deny(const struct options *o, const char *want)
{
	char got[512] = "", addr[ENDPOINT_STRLEN];

	for (uint32_t i = 0; i < o->media_deny.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s/%u ",
			endpoint_fmt_addr(&o->media_deny.net[i], addr), o->media_deny.bits[i]);
	assert_string_equal(got, want);
}

/* Options in the file and on the command line; a list on the command line replaces the file's. */
static void a_repeated_list_grows(void **state)
{
	char path[] = "/tmp/xcipher-options-XXXXXX", file[64], said[1024];
	const char *from_file[] = {file, NULL},
		   *both[] = {file, "--media-deny=192.0.2.0/24", "--media-deny=10.2.0.0/16", NULL},
		   *lists[] = {"--config-file=none", "--sdes-offer=AES_256_CM_HMAC_SHA1_80",
			   "--sdes-offer=AES_CM_128_HMAC_SHA1_80", "--opencl-device=gpu:3",
			   "--opencl-device=cpu", "--xdp-interface=a", "--xdp-interface=b", NULL},
		   *more[] = {"--config-file=none", "--sdes-accept=strong",
			   "--sdes-accept=UNENCRYPTED_SRTP", "--opencl-min=7", "--opencl-min=9",
			   NULL},
		   *interfaces[] = {file, "--interface=192.0.2.9", NULL};
	struct options o;

	(void)state;
	close(mkstemp(path));
	snprintf(file, sizeof(file), "--config-file=%s", path);
	write_file(path,
		"[xcipher]\nmedia-deny = 10.0.0.0/16\ntos = 1\nmedia-deny = 10.1.0.0/16\ntos = 2\n"
		"interface = 192.0.2.1\ninterface = b/192.0.2.2;c/192.0.2.3\n");
	assert_int_equal(read_with(&o, from_file, said, sizeof(said)), OPTIONS_RUN);
	expect_deny(&o, "10.0.0.0/16 10.1.0.0/16 ");
	assert_int_equal(o.locals, 3);
	assert_int_equal(o.tos, 2); /* not a list: the last value counts */
	options_free(&o);
	assert_int_equal(read_with(&o, both, said, sizeof(said)), OPTIONS_RUN);
	expect_deny(&o, "192.0.2.0/24 10.2.0.0/16 ");
	options_free(&o);
	assert_int_equal(read_with(&o, interfaces, said, sizeof(said)), OPTIONS_RUN);
	assert_int_equal(o.locals, 1);
	assert_int_equal(o.local[0].addr.addr[3], 9);
	options_free(&o);
	unlink(path);
	assert_int_equal(read_with(&o, lists, said, sizeof(said)), OPTIONS_RUN);
	assert_int_equal(o.sdes.offer[0], SUITE_AES_256_CM_80);
	assert_int_equal(o.sdes.offer[1], SUITE_AES_CM_128_80);
	assert_int_equal(o.sdes.offer[2], 0);
	assert_int_equal(o.devices, 2);
	assert_string_equal(o.device[1].name, "cpu");
	assert_int_equal(o.device[0].weight, 3);
	assert_string_equal(o.xdp_interfaces, "a,b");
	options_free(&o);
	assert_int_equal(read_with(&o, more, said, sizeof(said)), OPTIONS_RUN);
	assert_int_equal(o.sdes.params, NG_SDES_UNENCRYPTED_SRTP);
	assert_true(o.sdes.accept & 1u << SUITE_AES_CM_128_80);
	assert_int_equal(o.opencl_min[0], 7);
	assert_int_equal(o.opencl_min[1], 9);
	options_free(&o);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void nothing_needs_a_restart(void *arg, const char *name)
{
	(void)arg;
	fail_msg("%s needs a restart", name);
}

static void templates_come_from_their_section_and_are_tried(void **state)
{
	static const char section[] =
		"[flags]\nWebRTC = SRTP AVPF rtcp-mux=[offer require] SDES-order:AEAD_AES_256_GCM;AES_256_CM_HMAC_SHA1_80;AES_CM_128_HMAC_SHA1_80;\n generate-mid replace=[origin session-name SDP-version] label=longer-than-one-line\n";
	char path[] = "/tmp/xcipher-options-XXXXXX", arg[64], said[1024], text[1024];
	const char *args[] = {arg, NULL};
	struct options o, next;

	(void)state;
	close(mkstemp(path));
	snprintf(arg, sizeof(arg), "--config-file=%s", path);
	snprintf(text, sizeof(text), "%s[xcipher]\ntemplates = flags\n", section);
	write_file(path, text);
	assert_int_equal(read_with(&o, args, said, sizeof(said)), OPTIONS_RUN);
	assert_int_equal(o.ng_templates.n, 1);
	assert_true(str_eq(o.ng_templates.one[0].name, STR("WebRTC")));
	assert_non_null(strstr(o.ng_templates.one[0].flags.s, "_80; generate-mid"));
	/* a reload accepts new values */
	snprintf(text, sizeof(text), "%soffer = fast\n[xcipher]\ntemplates = flags\n", section);
	write_file(path, text);
	assert_int_equal(read_with(&next, args, said, sizeof(said)), OPTIONS_RUN);
	assert_int_equal(options_take_live(&o, &next, nothing_needs_a_restart, NULL), 1);
	assert_int_equal(o.ng_templates.n, 2);
	assert_int_equal(options_take_live(&next, &next, nothing_needs_a_restart, NULL), 0);
	options_free(&next);
	options_free(&o);
	write_file(path, "[xcipher]\ntemplates = flags\n[flags]\noffer = fast\nanswer = fats\n");
	assert_int_equal(read_with(&o, args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
	assert_non_null(strstr(said, "template answer: unknown flag: fats"));
	options_free(&o);
	write_file(path, "[xcipher]\ntemplates = flags\n");
	assert_int_equal(read_with(&o, args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
	assert_non_null(strstr(said, " has no such section with lines of the form"));
	options_free(&o);
	unlink(path);
}

static void devices_have_names_weights_and_minima(void **state)
{
	static const struct {
		const char *args[3];
		uint32_t devices;
		struct {
			const char *name;
			uint32_t weight, min;
		} want[3];
	} T[] = {
		{{"--tos=0"}, 1, {{"", 1, 0}}},
		{{"--opencl-device=cpu", "--opencl-min=7"}, 1, {{"cpu", 1, 7}}},
		{{"--opencl-device=gpu:3, Portable Computing:2 ,1", "--opencl-min=64,1"}, 3,
			{{"gpu", 3, 64}, {"Portable Computing", 2, 1}, {"1", 1, 1}}},
		{{"--opencl-device=:5"}, 1, {{"", 5, 0}}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct options o;
		char said[1024];

		assert_int_equal(read_with(&o, T[i].args, said, sizeof(said)), OPTIONS_RUN);
		assert_int_equal(o.devices, T[i].devices);
		for (uint32_t d = 0; d < o.devices; d++) {
			assert_string_equal(o.device[d].name, T[i].want[d].name);
			assert_int_equal(o.device[d].weight, T[i].want[d].weight);
			assert_int_equal(o.opencl_min[d], T[i].want[d].min);
		}
		options_free(&o);
	}
}

static void a_bad_line_of_the_file_is_named(void **state)
{
	char path[] = "/tmp/xcipher-options-XXXXXX", arg[64], said[1024];
	const char *args[] = {arg, NULL};
	FILE *f = fdopen(mkstemp(path), "w");
	struct options o;

	(void)state;
	assert_non_null(f);
	fputs("[xcipher]\ntos = 1\nsteering = pigeon\n", f);
	fclose(f);
	snprintf(arg, sizeof(arg), "--config-file=%s", path);
	assert_int_equal(read_with(&o, args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
	unlink(path);
	assert_non_null(
		strstr(said, "line 3: steering = pigeon is wrong, expected: udp, nfqueue, kernel"));
	options_free(&o);
}

static void a_refused_word_has_one_cause(void **state)
{
	static const struct {
		const char *word, *want;
	} T[] = {
		{"--interfaces=1", "unknown option --interfaces. Did you mean --interface?"},
		{"--qqq", "unknown option --qqq. --help lists all"},
		{"--foreground=yes", "--foreground takes no value"},
		{"--tos", "--tos needs a value: --tos=0..255"},
		{"--port=2000", "--port is ambiguous: --port-min is one of 2 options"},
		{"-x", "-x is not an option"},
	};
	char said[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(T[0]); i++) {
		const char *args[] = {"--config-file=none", T[i].word, NULL};
		struct options o;

		assert_int_equal(read_with(&o, args, said, sizeof(said)), OPTIONS_EXIT_ERROR);
		assert_non_null(strstr(said, T[i].want));
		options_free(&o);
	}
}

/* Weak suites must be named. */
static void sdes_lists_name_suites_in_order(void **state)
{
	static const uint32_t strong =
		(1u << SUITE_COUNT) - 2 - (1u << SUITE_NULL_80) - (1u << SUITE_NULL_32);
	static const uint32_t un =
		NG_SDES_UNENCRYPTED_SRTP | NG_SDES_UNENCRYPTED_SRTCP | NG_SDES_UNAUTHENTICATED_SRTP;
	static const struct {
		const char *args[4];
		uint8_t offer[SUITE_COUNT];
		uint32_t accept, params;
	} T[] = {
		{{"--config-file=none"}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, strong, 0},
		{{"--config-file=none",
			 "--sdes-offer=aes_cm_192_hmac_sha1_32; AES_F8_128_HMAC_SHA1_80,all"},
			{SUITE_AES_192_CM_32, SUITE_F8_128_80, 1, 2, 3, 4, 5, 7, 8, 10, 11, 12},
			strong, 0},
		{{"--config-file=none", "--sdes-accept=all", "--sdes-offer="}, {0},
			(1u << SUITE_COUNT) - 2, un},
		{{"--config-file=none", "--sdes-accept=NULL_HMAC_SHA1_80,UNENCRYPTED_SRTCP",
			 "--sdes-offer=AES_CM_256_HMAC_SHA1_80"},
			{SUITE_AES_256_CM_80}, 1u << SUITE_NULL_80, NG_SDES_UNENCRYPTED_SRTCP},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct options o;
		char said[1024];

		assert_int_equal(read_with(&o, T[i].args, said, sizeof(said)), OPTIONS_RUN);
		assert_memory_equal(o.sdes.offer, T[i].offer, sizeof(T[i].offer));
		assert_int_equal(o.sdes.accept, T[i].accept);
		assert_int_equal(o.sdes.params, T[i].params);
		options_free(&o);
	}
}

/* By any of their names, in the order of the list. */
static void profiles_of_dtls_have_an_order(void **state)
{
	static const struct {
		const char *args[4];
		uint8_t want[SUITE_COUNT];
	} T[] = {
		{{"--config-file=none"},
			{SUITE_AEAD_AES_256_GCM, SUITE_AEAD_AES_128_GCM, SUITE_AES_CM_128_80,
				SUITE_AES_CM_128_32}},
		{{"--config-file=none",
			 "--dtls-profiles=SRTP_AES128_CM_SHA1_32, srtp_aes128_cm_hmac_sha1_80,AEAD_AES_128_GCM"},
			{SUITE_AES_CM_128_32, SUITE_AES_CM_128_80, SUITE_AEAD_AES_128_GCM}},
		{{"--config-file=none", "--dtls-profiles=AES_CM_128_HMAC_SHA1_80",
			 "--dtls-profiles=strong"},
			{SUITE_AES_CM_128_80, SUITE_AEAD_AES_256_GCM, SUITE_AEAD_AES_128_GCM,
				SUITE_AES_CM_128_32}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct options o;
		char said[1024];

		assert_int_equal(read_with(&o, T[i].args, said, sizeof(said)), OPTIONS_RUN);
		assert_memory_equal(o.dtls_profile, T[i].want, sizeof(T[i].want));
		options_free(&o);
	}
}

static void note(void *arg, const char *name)
{
	char *said = arg;

	strcat(said, name);
	strcat(said, " ");
}

static void what_can_change_is_taken_and_the_rest_is_named(void **state)
{
	char *before[] = {(char *)"xcipherd", (char *)"--config-file=none", (char *)"--timeout=60",
		(char *)"--workers=2"};
	char *after[] = {(char *)"xcipherd", (char *)"--config-file=none", (char *)"--timeout=61",
		(char *)"--max-cpu=7.5", (char *)"--sdes-offer=all", (char *)"--log-level=3",
		(char *)"--pidfile=/x", (char *)"--workers=3", (char *)"--interface=127.0.0.9",
		(char *)"--batch-max=9"};
	char *wrong[] = {(char *)"xcipherd", (char *)"--config-file=none", (char *)"--tos=999"};
	char said[200] = "", err[200];
	struct options now, next;

	(void)state;
	assert_int_equal(options_read(&now, ARRAY_LEN(before), before), OPTIONS_RUN);
	assert_int_equal(
		options_again(&next, ARRAY_LEN(before), before, err, sizeof(err)), OPTIONS_RUN);
	assert_int_equal(options_take_live(&now, &next, note, said), 0);
	assert_string_equal(said, "");
	options_free(&next);
	assert_int_equal(
		options_again(&next, ARRAY_LEN(after), after, err, sizeof(err)), OPTIONS_RUN);
	assert_int_equal(options_take_live(&now, &next, note, said), 4);
	assert_string_equal(said, "interface workers batch-max pidfile ");
	assert_int_equal(now.timeout, 61);
	assert_true(now.limits.cpu == 7.5);
	assert_int_equal(now.log_level, 3);
	assert_memory_equal(now.sdes.offer, next.sdes.offer, sizeof(now.sdes.offer));
	assert_int_equal(now.batch_max, 256);
	options_free(&next);
	assert_int_equal(options_again(&next, ARRAY_LEN(wrong), wrong, err, sizeof(err)),
		OPTIONS_EXIT_ERROR);
	assert_string_equal(err, "--tos=999 is wrong, expected: a number from 0 to 255");
	options_free(&next);
	options_free(&now);
}

static void each_option_is_taken_or_named_as_its_row_says(void **state)
{
	char *args[] = {(char *)"xcipherd", (char *)"--config-file=none"};
	struct options now;

	(void)state;
	assert_int_equal(options_read(&now, ARRAY_LEN(args), args), OPTIONS_RUN);
	for (size_t i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &option_rows[i];
		struct options mine = now, next = now;
		uint8_t *changed = (uint8_t *)&next + row->offset;
		size_t len = option_is_text(row) ? sizeof(const char *) : 1;
		char said[200] = "";

		next.workers_auto = false;
		if (option_is_text(row)) {
			assert_false(row->live); /* the memory belongs to one set of options */
			memcpy(changed, &(const char *){"other"}, sizeof(const char *));
		} else {
			*changed = !*changed;
		}
		assert_int_equal(options_take_live(&mine, &next, note, said), row->live);
		if (row->live != (memcmp((uint8_t *)&mine + row->offset, changed, len) == 0))
			fail_msg("%s", row->name);
		if (!row->live)
			assert_non_null(strstr(said, row->name));
	}
	options_free(&now);
}

static void note_needs(void *arg, const char *name, const char *needs)
{
	char *said = arg;

	strcat(said, name);
	strcat(said, ": ");
	strcat(said, needs);
	strcat(said, "; ");
}

static void options_without_effect_are_named(void **state)
{
	static const struct {
		const char *args[4];
		const char *said;
	} T[] = {
		{{"--timeout=9"}, ""},
		{{"--source-rate=100"}, "source-rate: --steering=nfqueue, kernel or xdp; "},
		{{"--xdp-source-rate=100"}, "source-rate: --steering=nfqueue, kernel or xdp; "},
		{{"--source-rate=100", "--steering=nfqueue"}, ""},
		{{"--xdp-source-rate=100", "--steering=xdp"}, ""},
		{{"--xdp-source-rate=0", "--xdp-mode=auto"}, ""},
		{{"--xdp-interface=eth0", "--steering=kernel"}, "xdp-interface: --steering=xdp; "},
		{{"--udp-io=plain"}, ""},
		{{"--udp-io=plain", "--steering=nfqueue"}, "udp-io: --steering=udp; "},
		{{"--nfqueue-num=9"}, "nfqueue-num: --steering=nfqueue or kernel; "},
		{{"--nfqueue-num=9", "--steering=kernel"}, ""},
		{{"--kernel-relay=no", "--steering=nfqueue"}, "kernel-relay: --steering=kernel; "},
		{{"--opencl-device=gpu", "--engine=serial"},
			"opencl-device: --engine=auto or opencl; "},
		{{"--recording-max-age=5"}, "recording-max-age: --recording-dir; "},
		{{"--recording-max-age=5", "--recording-dir=/x"}, ""},
		{{"--redis-expires=5"}, "redis-expires: --redis; "},
		{{"--redis=127.0.0.1:1", "--redis-key-file=none", "--redis-expires=5"}, ""},
		{{"--homer-id=5"}, "homer-id: --homer; "},
		{{"--dtls-sha1=yes", "--keying-threads=0"},
			"dtls-sha1: --keying-threads=1 or more; "},
		{{"--mikey-state=/x", "--zrtp-cache-days=1"},
			"mikey-state: --mikey-config; zrtp-cache-days: --zrtp-cache; "},
		{{"--resample-to=16000"},
			"resample-to: --output-mixed=yes or --output-single=yes; "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const char *args[6] = {"--config-file=none"};
		char said[300] = "", err[300];
		struct options o;

		memcpy(args + 1, T[i].args, sizeof(T[i].args));
		assert_int_equal(read_with(&o, args, err, sizeof(err)), OPTIONS_RUN);
		options_idle(&o, note_needs, said);
		assert_string_equal(said, T[i].said);
		options_free(&o);
	}
}

/* A stranger forgets [xcipher], or takes the file of another program. */
static void a_file_without_our_section_is_noticed(void **state)
{
	static const struct {
		const char *text, *other, *said;
	} T[] = {
		{"[rtpengine]\ntos = 184\n", "rtpengine", ""},
		{"[rtpengine]\ntos = 184\n[more]\na = b\n", "rtpengine", ""},
		{"[rtpengine]\ntos = 184\n[xcipher]\ntos = 46\n", "", ""},
		{"[xcipher]\ntos = 46\n[other]\na = b\n", "", ""},
		{"[xcipher]\n", "", ""},
		{"", "", ""},
		{"\ntos = 46\n[xcipher]\n", "",
			", line 2: \"tos\" is in no section: write [xcipher] above it\n"},
	};
	char path[] = "/tmp/xcipher-options-XXXXXX", arg[64], said[1024];
	const char *args[] = {arg, NULL};

	(void)state;
	close(mkstemp(path));
	snprintf(arg, sizeof(arg), "--config-file=%s", path);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct options o;

		write_file(path, T[i].text);
		assert_int_equal(read_with(&o, args, said, sizeof(said)),
			T[i].said[0] ? OPTIONS_EXIT_ERROR : OPTIONS_RUN);
		if (T[i].said[0])
			assert_non_null(strstr(said, T[i].said));
		else
			assert_string_equal(said, "");
		assert_string_equal(o.other_section, T[i].other);
		options_free(&o);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_without_effect_are_named),
		cmocka_unit_test(a_file_without_our_section_is_noticed),
		cmocka_unit_test(each_option_is_taken_or_named_as_its_row_says),
		cmocka_unit_test(mistakes_are_named_in_one_line),
		cmocka_unit_test(file_and_command_line_agree_on_names),
		cmocka_unit_test(an_empty_text_is_an_error),
		cmocka_unit_test(options_of_xcipher_web_name_it),
		cmocka_unit_test(a_repeated_list_grows),
		cmocka_unit_test(sdes_lists_name_suites_in_order),
		cmocka_unit_test(profiles_of_dtls_have_an_order),
		cmocka_unit_test(templates_come_from_their_section_and_are_tried),
		cmocka_unit_test(devices_have_names_weights_and_minima),
		cmocka_unit_test(a_bad_line_of_the_file_is_named),
		cmocka_unit_test(a_refused_word_has_one_cause),
		cmocka_unit_test(what_can_change_is_taken_and_the_rest_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
