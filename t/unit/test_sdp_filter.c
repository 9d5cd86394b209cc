/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codecs and attributes removed from or added to SDP: by ng's trees and by its flags. Everything
 * else stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/json.h"
#include "proto/ng.h"

#define HEAD  "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\na=tool:x\r\n"
#define AUDIO "m=audio 4000 RTP/AVP 8 0 96 101\r\n"
#define MAPS                                                                                            \
	"a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\na=rtpmap:101 telephone-event/8000\r\n" \
	"a=fmtp:101 0-15\r\na=ptime:20\r\n"
#define OTHER "m=application 5000 TCP/BFCP *\r\na=setup:active\r\n"

/* Runs body through a request in JSON, with ' for ". */
static struct str filtered(struct pool *p, const char *json, const char *body, struct str *warning)
{
	char *text = strdup(json);
	struct ngval *msg = NULL;
	struct ng_request *r = pool_alloc(p, sizeof(*r));
	struct str out;
	uint32_t emptied;
	size_t pos = 0;

	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(json_parse(&msg, p, str_from(text), &pos), 0);
	assert_int_equal(ng_request_parse(r, p, msg), 0);
	*warning = r->warning;
	out = sdp_filter_apply(&r->filter, p, str_from(body), &emptied);
	free(text);
	return out;
}

static void header_extensions_are_stripped_everywhere(void **state)
{
	static const char with[] = "v=0\r\na=extmap-allow-mixed\r\na=extmap:1 urn:x\r\n" AUDIO
				   "a=extmap:2/recvonly urn:y\r\na=extmaps:z\r\n";
	struct str got, warning;
	struct pool *p;

	(void)state;
	assert_int_equal(pool_create(&p, 1u << 20), 0);
	got = filtered(p, "{'command':'offer','flags':['strip extmap']}", with, &warning);
	assert_true(str_eq(got, STR("v=0\r\na=extmap-allow-mixed\r\n" AUDIO "a=extmaps:z\r\n")));
	assert_int_equal(warning.len, 0);
	pool_destroy(p);
}

static void only_what_is_asked_for_changes(void **state)
{
	static const struct {
		const char *json, *want;
	} rows[] = {
		{"{'command':'offer'}", HEAD AUDIO MAPS OTHER},
		{"{'command':'offer','codec':{'strip':['PCMA']}}",
			HEAD "m=audio 4000 RTP/AVP 0 96 101\r\n" MAPS OTHER},
		{"{'command':'offer','flags':['codec-strip-pcma','codec-strip-OPUS']}",
			HEAD
			"m=audio 4000 RTP/AVP 0 101\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n" OTHER},
		{"{'command':'offer','rtpp-flags':'codec=[strip=[all] except=[PCMU telephone-event]]'}",
			HEAD
			"m=audio 4000 RTP/AVP 0 101\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n" OTHER},
		{"{'command':'offer','codec':{'mask':['all'],'offer':['opus','PCMU']}}",
			HEAD
			"m=audio 4000 RTP/AVP 96 0\r\n"
			"a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\na=ptime:20\r\n" OTHER},
		{"{'command':'offer','codec':{'offer':['PCMU']}}",
			HEAD "m=audio 4000 RTP/AVP 0 8 96 101\r\n" MAPS OTHER},
		{"{'command':'offer','codec':{'strip':['opus/8000']}}", HEAD AUDIO MAPS OTHER},
		/* The filter would remove everything. */
		{"{'command':'offer','codec':{'strip':['all']}}", HEAD AUDIO MAPS OTHER},
		/* masked and consumed codecs are not offered, accepted ones are */
		{"{'command':'offer','codec':{'consume':['PCMU'],'accept':['PCMA']}}",
			HEAD "m=audio 4000 RTP/AVP 8 96 101\r\n" MAPS OTHER},
		{"{'command':'offer','codec':{'ignore':['PCMU']}}",
			HEAD "m=audio 4000 RTP/AVP 8 96 101\r\n" MAPS OTHER},
		/* of an offer only */
		{"{'command':'answer','codec':{'mask':['PCMU'],'transcode':['PCMA']}}",
			HEAD AUDIO MAPS OTHER},
		/* what the sender has is not added */
		{"{'command':'offer','codec':{'transcode':['PCMU','PCMA']}}",
			HEAD AUDIO MAPS OTHER},
		{"{'command':'offer','flags':['codec-strip-PCMU','codec-transcode-PCMU']}",
			HEAD "m=audio 4000 RTP/AVP 8 96 101 0\r\n" MAPS
			     "a=rtpmap:0 PCMU/8000\r\n" OTHER},
		/* restored after "all", and first; added again after "full" */
		{"{'command':'offer','codec':{'mask':['all'],'transcode':['PCMU']}}",
			HEAD "m=audio 4000 RTP/AVP 0\r\na=ptime:20\r\n" OTHER},
		{"{'command':'offer','codec':{'mask':['full'],'transcode':['PCMU']}}",
			HEAD
			"m=audio 4000 RTP/AVP 0\r\na=ptime:20\r\na=rtpmap:0 PCMU/8000\r\n" OTHER},
		/* nothing is left to transcode from */
		{"{'command':'offer','codec':{'strip':['full'],'transcode':['PCMU']}}",
			HEAD AUDIO MAPS OTHER},
		{"{'command':'answer','flags':['single codec']}",
			HEAD
			"m=audio 4000 RTP/AVP 8 101\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n" OTHER},
		{"{'command':'answer','flags':['single-codec','codec-strip-PCMA']}",
			HEAD
			"m=audio 4000 RTP/AVP 0 101\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n" OTHER},
		{"{'command':'offer','flags':['single-codec']}", HEAD AUDIO MAPS OTHER},
		{"{'command':'offer','sdp-attr':{'audio':{'remove':['ptime'],'add':['x:1','y']},'session':{'substitute':[['tool:x','tool:y']]}}}",
			"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\na=tool:y\r\n" AUDIO
			"a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\na=rtpmap:101 telephone-event/8000\r\n"
			"a=fmtp:101 0-15\r\na=x:1\r\na=y\r\n" OTHER},
		{"{'command':'offer','flags':['sdp-attr-remove-application-setup:active','sdp-attr-remove-audio-ptime:30']}",
			HEAD AUDIO MAPS "m=application 5000 TCP/BFCP *\r\n"},
		/* one pair without a list; words contain neither blanks nor equals signs */
		{"{'command':'offer','sdp-attr':{'audio':{'substitute':['ptime:20','x:a..b--c']}}}",
			HEAD AUDIO
			"a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=x:a..b--c\r\n" OTHER},
		{"{'command':'offer','flags':['sdp-attr-substitute-audio-ptime>x:a..b--c']}",
			HEAD AUDIO
			"a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=x:a b=c\r\n" OTHER},
		{"{'command':'offer','rtpp-flags':'sdp-attr=[audio=[substitute=[[ptime x:a..b--c]]]]'}",
			HEAD AUDIO
			"a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\n"
			"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=x:a b=c\r\n" OTHER},
		/* by its first value, by its name; existing attributes are not added again */
		{"{'command':'offer','sdp-attr':{'audio':{'remove':['fmtp:101','ptime:'],'add':['rtpmap:96 opus/48000/2']}}}",
			HEAD AUDIO "a=rtpmap:96 opus/48000/2\r\na=fmtp:96 useinbandfec=1\r\n"
				   "a=rtpmap:101 telephone-event/8000\r\n" OTHER},
		{"{'command':'offer','sdp-attr':{'audio':{'remove':['fmtp:1','fmtp:101 0']}}}",
			HEAD AUDIO MAPS OTHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str got, warning;
		struct pool *p;

		assert_int_equal(pool_create(&p, 1u << 20), 0);
		got = filtered(p, rows[i].json, HEAD AUDIO MAPS OTHER, &warning);
		if (!str_eq(got, str_from(rows[i].want)))
			fail_msg("%s:\n" STR_FMT, rows[i].json, STR_ARG(got));
		assert_int_equal(warning.len, 0);
		pool_destroy(p);
	}
}

static void what_is_wrong_is_a_warning_and_no_line_of_its_own(void **state)
{
	static const struct {
		const char *json, *warning;
	} rows[] = {
		{"{'command':'offer','codec':{'stripp':['PCMA']}}", "unknown flag: codec=stripp"},
		{"{'command':'offer','flags':['codec-stripp-PCMA']}",
			"unknown flag: codec-stripp-PCMA"},
		{"{'command':'offer','sdp-attr':{'audio':{'ad':['x']}}}",
			"unknown flag: sdp-attr=ad"},
		{"{'command':'offer','sdp-attr':{'audio':{'add':['x\\r\\nm=audio 1 RTP/AVP 0']}}}",
			"unknown flag: sdp-attr=x??m=audio 1 RTP/AVP 0"},
		{"{'command':'offer','sdp-attr':{'audio':{'substitute':[['x','a\\nb']]}}}",
			"unknown flag: sdp-attr=x"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str got, warning;
		struct pool *p;

		assert_int_equal(pool_create(&p, 1u << 20), 0);
		got = filtered(p, rows[i].json, HEAD AUDIO MAPS OTHER, &warning);
		assert_true(str_eq(got, STR(HEAD AUDIO MAPS OTHER)));
		if (!str_eq(warning, str_from(rows[i].warning)))
			fail_msg("%s: " STR_FMT, rows[i].json, STR_ARG(warning));
		pool_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_asked_for_changes),
		cmocka_unit_test(header_extensions_are_stripped_everywhere),
		cmocka_unit_test(what_is_wrong_is_a_warning_and_no_line_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
