/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of identities for MIKEY: what is found for whom, one complaint for each mistake, and the
 * warnings before a certificate or a revocation list ends. Exchanges with certificates:
 * t/e2e/test_mikey.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keying/mikey_config.h"
#include "keying/mikey_host.h"
#include "mikey_rig.h"

static char folder[64];

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test-mikey-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	write_file("text", "a key of enough length\n", 0600);
	write_file("hex", "0x000102030405060708090a0B0c0D0e0f\n", 0640);
	write_file("short", "too short\n", 0600);
	write_file("odd", "0x000102030405060708090a0B0c0D0e0\n", 0600);
	write_file("nohex", "0x000102030405060708090a0B0c0D0eXX\n", 0600);
	write_file("open", "a key of enough length\n", 0644);
	write_file("rubbish.pem", "rubbish\n", 0600);
	return 0;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"text", "hex", "short", "odd", "nohex", "open",
		"rubbish.pem", "ini", "self.pem", "roots.pem", "crl.pem"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

static int load(struct mikey_config **c, const char *text, char *err, size_t err_len)
{
	char path[128];

	write_file("ini", text, 0644);
	snprintf(path, sizeof(path), "%s/ini", folder);
	return mikey_config_load(c, path, err, err_len);
}

#define SELF "[self]\nidentity = sip:gw@example.org\n"

static void peers_are_found(void **state)
{
	static const struct {
		const char *id;
		bool found;
		size_t key;
		uint32_t modes;
		uint8_t first;
		bool initiate, respond;
	} T[] = {
		{"sip:bob@example.org", true, 22, 2, MIKEY_DHHMAC, true, true},
		{"sip:eve@example.org", true, 16, 2, MIKEY_PSK, true, false},
		{"eve@example.org", true, 16, 2, MIKEY_PSK, true, false},
		{"sip:eve@a@example.org", true, 16, 2, MIKEY_PSK, true, false},
		{"sip:eve@example.org.evil", true, 0, 1, MIKEY_DH, true, true},
		{"sip:Bob@example.org", true, 16, 2, MIKEY_PSK, true, false},
		/* Certificates have domains in either case: no section is evaded by that. */
		{"sip:bob@EXAMPLE.org", true, 22, 2, MIKEY_DHHMAC, true, true},
		{"sip:eve@Example.ORG", true, 16, 2, MIKEY_PSK, true, false},
		{"", false, 0, 0, 0, false, false},
	};
	struct mikey_config *c = NULL;
	char err[256];

	(void)state;
	assert_int_equal(load(&c,
				 SELF "skew = 10\nweak-dh = yes\n"
				      "[peer *]\nmodes = dh\n"
				      "[peer sip:bob@example.org]\npsk-file = text\n"
				      "modes = dhhmac psk\n"
				      "[peer *@example.org]\npsk-file = hex\nmay = initiate\n",
				 err, sizeof(err)),
		0);
	assert_int_equal(mikey_config_peers(c), 3);
	assert_int_equal(mikey_config_limits(c)->skew_s, 10);
	assert_true(mikey_config_limits(c)->weak_dh);
	assert_false(mikey_config_limits(c)->null_key_encryption);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct mikey_party p;
		struct mikey_id id = {0};

		if (*T[i].id)
			assert_int_equal(mikey_id_from_text(&id, str_from(T[i].id)), 0);
		if (!T[i].found) {
			assert_int_equal(mikey_config_find(c, &p, &id), -ENOENT);
			continue;
		}
		assert_int_equal(mikey_config_find(c, &p, &id), 0);
		assert_true(mikey_id_eq(&p.peer.id, &id));
		assert_int_equal(p.peer.psk.len, T[i].key);
		assert_int_equal(p.modes, T[i].modes);
		assert_int_equal(p.mode[0], T[i].first);
		assert_int_equal(p.may_initiate, T[i].initiate);
		assert_int_equal(p.may_respond, T[i].respond);
		assert_true(str_eq(
			(struct str){p.mine.id.name, p.mine.id.len}, STR("sip:gw@example.org")));
	}
	mikey_config_destroy(c);
}

/* An empty section counts: the peer does not get the section of its domain. */
static void a_section_needs_no_entries(void **state)
{
	struct mikey_config *c = NULL;
	struct mikey_party p;
	struct mikey_id id;
	char err[256];

	(void)state;
	assert_int_equal(load(&c,
				 SELF "[peer *@example.org]\npsk-file = text\n"
				      "[peer sip:eve@example.org]\n"
				      "[peer sip:bob@example.org]\npsk-file = hex\n",
				 err, sizeof(err)),
		0);
	assert_int_equal(mikey_config_peers(c), 3);
	assert_int_equal(mikey_id_from_text(&id, STR("sip:eve@example.org")), 0);
	assert_int_equal(mikey_config_find(c, &p, &id), 0);
	assert_int_equal(p.peer.psk.len, 0);
	assert_int_equal(p.modes, 0);
	mikey_config_destroy(c);
}

/* Limits apply to a peer, or to all names that one key serves. */
static void rates_and_owners(void **state)
{
	static const struct {
		const char *id, *owner;
		uint32_t rate;
	} T[] = {
		{"sip:bob@example.org", "", 7},
		{"sip:eve@example.org", "*@example.org", 3},
		{"sip:eve@example.net", "", 3},
	};
	struct mikey_config *c = NULL;
	char err[256];

	(void)state;
	assert_int_equal(load(&c,
				 SELF "rate = 0\npeer-rate = 3\n[peer *]\n"
				      "[peer *@example.org]\npsk-file = text\n"
				      "[peer sip:bob@example.org]\npsk-file = hex\nrate = 7\n",
				 err, sizeof(err)),
		0);
	assert_int_equal(mikey_config_limits(c)->rates.all, 0);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct mikey_party p;
		struct mikey_id id;

		assert_int_equal(mikey_id_from_text(&id, str_from(T[i].id)), 0);
		assert_int_equal(mikey_config_find(c, &p, &id), 0);
		assert_int_equal(p.peer.rate, T[i].rate);
		assert_true(str_eq(
			(struct str){p.peer.owner.name, p.peer.owner.len}, str_from(T[i].owner)));
	}
	mikey_config_destroy(c);
}

/* A named pipe would block the control thread until somebody writes to it. */
static void pipes_are_refused(void **state)
{
	struct mikey_config *c = NULL;
	char pipe[128], err[256];

	(void)state;
	alarm(600);
	snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(mikey_config_load(&c, pipe, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "not a regular file"));
	assert_int_equal(load(&c, SELF "roots = pipe\n", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "cannot read"));
	assert_int_equal(
		load(&c, SELF "[peer a@b]\ncertificate = pipe\n", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "cannot read"));
	assert_int_equal(load(&c, SELF "[peer a@b]\npsk-file = pipe\n", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "not a regular file"));
	unlink(pipe);
	alarm(0);
}

static void mistakes_have_one_complaint(void **state)
{
	static const struct {
		const char *text, *complaint;
	} T[] = {
		{"", "set identity in section [self]"},
		{"[self]\nidentity =\n", "1 to 255 characters"},
		{"[other]\na = b\n", "sections are"},
		{SELF "color = red\n", "color is not a name"},
		{SELF "[peer a@b]\n[peer a@c]\n[peer a@B]\n", "two sections [peer a@"},
		{SELF "[peer a@b]\n[peer A@b]\n[peer a@B]\n", "two sections [peer a@"},
		{SELF "[peer b]\n[peer c]\n[peer B]\n", "two sections [peer "},
		{SELF "[peer a@b]\ncolor = red\n", "color is not a name"},
		{SELF "rate = many\n", "rate is 0 to 100000"},
		{SELF "[peer a@b]\nrate = -1\n", "rate is 0 to 100000"},
		{SELF "skew = 0\n", "skew is 1 to 86400"},
		{SELF "weak-dh = maybe\n", "weak-dh is yes or no"},
		{SELF "crl = rubbish.pem\n", "crl needs roots"},
		{SELF "roots = rubbish.pem\n", "not PEM"},
		{SELF "roots = absent.pem\n", "cannot read"},
		{SELF "certificate = rubbish.pem\n", "no usable PEM certificate"},
		{SELF "[peer a@b]\npsk-file = absent\n", "absent"},
		{SELF "[peer a@b]\npsk-file = short\n", "16 to 64 characters"},
		{SELF "[peer a@b]\npsk-file = odd\n", "16 to 64 characters"},
		{SELF "[peer a@b]\npsk-file = nohex\n", "16 to 64 characters"},
		{SELF "[peer a@b]\npsk-file = open\n", "open"},
		{SELF "[peer a@b]\nmodes = psk tls\n", "modes are"},
		{SELF "[peer a@b]\nmodes =\n", "modes are"},
		{SELF "[peer a@b]\nmay = anything\n", "may is"},
		{SELF "[peer a@b]\ncolor = red\n", "color is not a name"},
		{SELF "[peer a@b]\ncertificate = rubbish.pem\n", "no usable PEM certificate"},
		{SELF "nonsense\n", "not of the form name = value"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct mikey_config *c = NULL;
		char err[512] = "";

		assert_true(load(&c, T[i].text, err, sizeof(err)) < 0);
		assert_null(c);
		if (!strstr(err, T[i].complaint))
			fail_msg("\"%s\" instead of \"%s\"", err, T[i].complaint);
		assert_null(strstr(err, "enough length"));
	}
}

static void a_mistake_names_file_and_line(void **state)
{
	static const struct {
		const char *text, *where;
	} T[] = {
		{"[self]\nidentity =\n", ", line 2: identity has"},
		{"[self]\nidentity = a@b\n\n[peer a@b]\ncolor = red\n", ", line 5: color is not"},
		{"[self]\nidentity = a@b\n[other]\n", ", line 3: sections are"},
		{"root:x:0:0\n", ", line 1: sections are"},
		{"[self]\nnonsense\n", ", line 2: not of the form"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct mikey_config *c = NULL;
		char err[512] = "";

		assert_int_equal(load(&c, T[i].text, err, sizeof(err)), -EINVAL);
		assert_ptr_equal(strstr(err, "--mikey-config: /"), err);
		if (!strstr(err, T[i].where))
			fail_msg("\"%s\" instead of \"%s\"", err, T[i].where);
	}
}

static void a_file_that_is_absent(void **state)
{
	struct mikey_config *c = NULL;
	char err[256];

	(void)state;
	assert_int_equal(mikey_config_load(&c, "/nowhere/ini", err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "/nowhere/ini"));
}

/* --- Warnings --------------------------------------------------------------------------------- */

#define DAY  86400
#define NOW  ((int64_t)RIG_NOW_S)
#define ENDS SELF "certificate = self.pem\nroots = roots.pem\ncrl = crl.pem\n"

static uint64_t mono_s, real_s = RIG_NOW_S;

static uint64_t mono_ns(void)
{
	return mono_s * 1000000000ull;
}

static uint64_t real_ns(void)
{
	return real_s * 1000000000ull;
}

static char warned[4096];
static uint32_t warnings;

static void warn(void *arg, const char *line)
{
	assert_ptr_equal(arg, warned);
	assert_true(strlen(warned) + strlen(line) + 2 < sizeof(warned));
	strcat(strcat(warned, line), "\n");
	warnings++;
}

static void write_pair(const char *name, char *a, char *b)
{
	char text[16384];

	snprintf(text, sizeof(text), "%s%s", a, b);
	write_file(name, text, 0600);
	free(a);
	free(b);
}

/* A configuration of certificate and lists that end at these times. */
static struct mikey_config *with_ends(
	const char *uri, int64_t cert_s, int64_t old_crl_s, int64_t crl_s)
{
	struct rig_subject s = {.uri = uri, .serial = 7, .from_s = NOW - 400 * DAY, .to_s = cert_s};
	struct mikey_config *c = NULL;
	struct rig_ca ca;
	char *cert, *key, *root, err[256];

	rig_ca_make(&ca, "root");
	rig_cert_pem(&ca, &s, &cert, &key);
	root = rig_ca_pem(&ca);
	write_pair("self.pem", cert, key);
	write_file("roots.pem", root, 0600);
	write_pair("crl.pem", rig_crl(&ca, 0, NOW - 400 * DAY, old_crl_s),
		rig_crl(&ca, 0, NOW - 300 * DAY, crl_s));
	free(root);
	rig_ca_free(&ca);
	assert_int_equal(load(&c, ENDS, err, sizeof(err)), 0);
	return c;
}

static void what_ends_soon_is_warned_of(void **state)
{
	static const char us[] = "sip:gw@example.org", other[] = "sip:other@example.org";
	/* RIG_NOW_S is 2027-01-15 08:00. NULL: no such warning. */
	static const struct {
		const char *uri;
		int64_t cert_s, crl_s;
		const char *warning;
	} T[] = {
		{us, NOW + 30 * DAY + 1, NOW + 2 * DAY + 1, NULL},
		{us, NOW + 30 * DAY, NOW + 9 * DAY,
			"/self.pem: replace the certificate before it expires on 2027-02-14 08:00 UTC\n"},
		{us, NOW, NOW + 9 * DAY,
			"/self.pem: peers may refuse the certificate: replace it, because it expired on 2027-01-15 08:00 UTC\n"},
		{us, NOW + 99 * DAY, NOW + 2 * DAY,
			"/crl.pem: replace the revocation list that is valid only until 2027-01-17 08:00 UTC\n"},
		{us, NOW + 99 * DAY, NOW - DAY,
			"/crl.pem: xcipherd refuses certificates: replace the revocation list that was valid until 2027-01-14 08:00 UTC\n"},
		{other, NOW + 99 * DAY, NOW + 9 * DAY,
			"/self.pem: the certificate does not have the identity sip:gw@example.org, so peers may refuse it: correct one of them\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		/* The older list of the same issuer has ended: no reason to warn. */
		struct mikey_config *c =
			with_ends(T[i].uri, T[i].cert_s, NOW - 100 * DAY, T[i].crl_s);

		warned[0] = 0;
		warnings = 0;
		mikey_config_check(c, NOW, warn, warned);
		assert_int_equal(warnings, T[i].warning ? 1 : 0);
		if (T[i].warning) {
			assert_memory_equal(warned, "MIKEY: ", 7);
			assert_non_null(strstr(warned, T[i].warning));
			assert_non_null(strstr(warned, folder));
		}
		mikey_config_destroy(c);
	}
}

static void without_certificates_nothing_ends(void **state)
{
	struct mikey_config *c = NULL;
	char err[256];

	(void)state;
	assert_int_equal(load(&c, SELF, err, sizeof(err)), 0);
	warnings = 0;
	mikey_config_check(c, 1000 * NOW, warn, warned);
	assert_int_equal(warnings, 0);
	mikey_config_destroy(c);
}

/* At start, once a day, and after a reload. The real clock does not decide when. */
static void warnings_come_once_a_day(void **state)
{
	static const struct mikey_clocks clocks = {.real = real_ns, .mono = mono_ns};
	const char *us = "sip:gw@example.org";
	struct mikey_host h;

	(void)state;
	warned[0] = 0;
	warnings = 0;
	assert_int_equal(mikey_host_init(&h, with_ends(us, NOW + 30 * DAY + 60, 0, NOW + 99 * DAY),
				 MIKEY_USE_ACCEPT, &clocks),
		0);
	mikey_host_check(&h, warn, warned);
	assert_int_equal(warnings, 0);
	real_s += 60; /* now it is due */
	mono_s = DAY - 1;
	mikey_host_check(&h, warn, warned);
	assert_int_equal(warnings, 0);
	mono_s = DAY;
	mikey_host_check(&h, warn, warned);
	mikey_host_check(&h, warn, warned);
	assert_int_equal(warnings, 1);
	mikey_host_reload(&h, with_ends(us, NOW + DAY, 0, NOW + 99 * DAY));
	mikey_host_check(&h, warn, warned);
	mikey_host_check(&h, warn, warned);
	assert_int_equal(warnings, 2);
	mikey_host_fini(&h);
	mikey_host_init(&h, NULL, MIKEY_USE_ACCEPT, &clocks);
	mikey_host_check(&h, warn, warned);
	assert_int_equal(warnings, 2);
	mikey_host_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_are_found),
		cmocka_unit_test(a_section_needs_no_entries),
		cmocka_unit_test(rates_and_owners),
		cmocka_unit_test(pipes_are_refused),
		cmocka_unit_test(mistakes_have_one_complaint),
		cmocka_unit_test(a_mistake_names_file_and_line),
		cmocka_unit_test(a_file_that_is_absent),
		cmocka_unit_test(what_ends_soon_is_warned_of),
		cmocka_unit_test(without_certificates_nothing_ends),
		cmocka_unit_test(warnings_come_once_a_day),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
