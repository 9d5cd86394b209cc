/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_tls.so without Kamailio: whom a request is for, and whose certificates fit (RFC 5922). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../module/tls/names.c"

static const struct {
	const char *message, *name;
	bool initial;
} HOPS[] = {
	{"INVITE urn:service:sos SIP/2.0\r\nRoute: <sip:sos@esrp.example:5061;transport=tls;lr>\r\n"
	 "Route: <sip:other.example;lr>\r\nTo: <urn:service:sos>\r\n\r\n",
		"esrp.example", true},
	{"OPTIONS sips:keepalive@psap.example;transport=tls SIP/2.0\r\nt: <sip:x@y>\r\n\r\n",
		"psap.example", true},
	{"OPTIONS sip:psap.example SIP/2.0\r\n\r\nRoute: <sip:body.example>\r\n", "psap.example",
		true},
	{"BYE sip:a@b.example SIP/2.0\r\nROUTE : \"<sip:no>\" <sip:x.example>, <sip:y.example>\r\n"
	 "To: <sip:x>;x=1;\r\n Tag=2\r\n\r\n",
		"no", false},
	{"INVITE sip:a@b.example SIP/2.0\r\nTo: \"\\\">;tag=1\" <sip:a;tag=1>;x=y\r\n\r\n",
		"b.example", true},
	{"INVITE sip:a@b.example SIP/2.0\r\nTo: sip:a;tag=1\r\n\r\n", "b.example", false},
	{"INVITE sip:a;x=@y@b.example?h=v SIP/2.0\r\nToo: x;tag=1\r\n\r\n", "b.example", true},
	{"INVITE sip:a@192.0.2.1:5061 SIP/2.0\r\n\r\n", "", true},
	{"INVITE sip:a@[2001:db8::1]:5061 SIP/2.0\r\n\r\n", "", true},
	{"INVITE sip: SIP/2.0\r\n\r\n", "", true},
	{"INVITE tel:911 SIP/2.0\r\n\r\n", "", true},
	{"SIP/2.0 200 OK\r\nRoute: <sip:x.example>\r\n\r\n", "", false},
	{"\r\n\r\n", "", false},
	{"x", "", false},
	{"x y", "", false},
	{"x sip:y z", "y", true},
	{"", "", false},
};

static void a_request_is_for_the_host_of_its_next_hop(void **state)
{
	struct hop hop;

	(void)state;
	for (size_t i = 0; i < sizeof(HOPS) / sizeof(HOPS[0]); i++) {
		size_t len = strlen(HOPS[i].message);
		char *copy = malloc(len + 1); /* the sanitizer sees its end */

		memcpy(copy, HOPS[i].message, len);
		names_hop(&hop, copy, len);
		assert_string_equal(hop.name, HOPS[i].name);
		assert_int_equal(hop.initial, HOPS[i].initial);
		free(copy);
	}
}

/* No certificate has such a name, and the buffer has an end. */
static void a_long_name_is_cut(void **state)
{
	char message[1000] = "INVITE sip:";
	struct hop hop;

	(void)state;
	memset(message + 11, 'a', 600);
	memcpy(message + 611, " SIP/2.0\r\n\r\n", 13);
	names_hop(&hop, message, strlen(message));
	assert_int_equal(strlen(hop.name), NAME_SIZE - 1);
}

static const struct {
	const char *names; /* NULL: the certificate has no subjectAltName */
	const char *name;
	bool match;
} CERTIFICATES[] = {
	{"DNS:a.example,DNS:b.example", "B.Example", true},
	{"DNS:a.example", "b.example", false},
	{"DNS:a.example", "x.a.example", false},
	{"DNS:x.a.example", "a.example", false},
	{"DNS:*.example", "a.example", false},
	{"DNS:a.example,URI:http://b.example", "a.example", true},
	{"DNS:a.example,URI:http://b.example", "b.example", false},
	{"DNS:a.example,URI:sip:user@b.example", "a.example", true},
	{"DNS:a.example,URI:sip:user@b.example", "b.example", false},
	{"URI:SIP:a.example", "a.example", true},
	{"URI:sip:a.example:5061;transport=tls", "a.example", true},
	{"URI:sips:a.example", "a.example", false},
	{"DNS:a.example,URI:sip:b.example", "a.example", false},
	{"DNS:a.example,URI:sip:b.example", "b.example", true},
	{"IP:192.0.2.1", "192.0.2.1", false},
	{NULL, "a.example", false},
};

static void a_certificate_is_of_its_sip_uri_or_dns_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(CERTIFICATES) / sizeof(CERTIFICATES[0]); i++) {
		X509 *x = X509_new();

		X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
			(const void *)"a.example", -1, -1, 0);
		if (CERTIFICATES[i].names) {
			X509_EXTENSION *e = X509V3_EXT_conf_nid(
				NULL, NULL, NID_subject_alt_name, CERTIFICATES[i].names);

			assert_non_null(e);
			X509_add_ext(x, e, -1);
			X509_EXTENSION_free(e);
		}
		assert_int_equal(names_match(x, CERTIFICATES[i].name), CERTIFICATES[i].match);
		X509_free(x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_for_the_host_of_its_next_hop),
		cmocka_unit_test(a_long_name_is_cut),
		cmocka_unit_test(a_certificate_is_of_its_sip_uri_or_dns_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
