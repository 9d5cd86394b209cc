/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: the format of a line about a call, as text and in the journal; protection against
 * injected lines; and closing it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "virtual_time.h"

static const struct log_about about = {
	.call_id = {"c\n1", 3}, .side = {"t\x1b[2J", 5}, .media = 2, .stream = "RTP"};

/* Returns the text written to standard error meanwhile. */
static int keep;
static FILE *said;

static void listen_in(void)
{
	said = tmpfile();
	assert_non_null(said);
	fflush(stderr);
	keep = dup(STDERR_FILENO);
	dup2(fileno(said), STDERR_FILENO);
}

static uint32_t heard(char *out, size_t len)
{
	uint32_t lines = 0;
	size_t n;

	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(said);
	n = fread(out, 1, len - 1, said);
	out[n] = 0;
	fclose(said);
	for (char *c = out; *c; c++)
		lines += *c == '\n';
	return lines;
}

static void a_line_is_one_line_whoever_wrote_it(void **state)
{
	char text[4096];

	(void)state;
	log_open("me", LOG_INFO, 1);
	listen_in();
	log_call(LOG_INFO, &about, "hello %s", "a\nb");
	log_debug("not this");
	log_call(LOG_DEBUG, &about, "nor this");
	log_call(LOG_DEBUG, &(struct log_about){.call_id = STR("d"), .always = true}, "but this");
	assert_int_equal(heard(text, sizeof(text)), 2);
	assert_non_null(
		strstr(text, " me info: call-id \"c?1\", tag \"t?[2J\", media 2 RTP: hello a?b\n"));
	assert_non_null(strstr(text, " me debug: call-id \"d\": but this\n"));
}

static void no_more_lines_than_a_log_bears(void **state)
{
	static char text[1 << 20];
	uint32_t lines;

	(void)state;
	virtual_time_begin();
	log_open("me", LOG_INFO, 1);
	listen_in();
	for (uint32_t i = 0; i < 5 * LOG_LINES_PER_SECOND; i++)
		log_info("again");
	log_warn("this is heard nevertheless");
	virtual_time_pass(NS_PER_SEC);
	log_info("later");
	lines = heard(text, sizeof(text));
	assert_int_equal(lines, LOG_LINES_PER_SECOND + 3);
	assert_non_null(strstr(text, "nevertheless"));
	assert_non_null(strstr(text, "lines were suppressed"));
	assert_non_null(strstr(text, "later"));
}

static void the_journal_gets_fields(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	static char text[1 << 18];
	char got[4096], dir[] = "/tmp/xc-log-XXXXXX";
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	ssize_t n;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir);
	log_open("me", LOG_INFO, 1);
	assert_int_equal(log_journal(at.sun_path), -ENOENT);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(log_journal(at.sun_path), 0);
	listen_in();
	log_call(LOG_WARNING, &about, "hello\nPRIORITY=0");
	n = recv(fd, got, sizeof(got) - 1, 0);
	assert_true(n > 0);
	got[n] = 0;
	assert_string_equal(got,
		"PRIORITY=4\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=me\nCALL_ID=c?1\nSIDE=t?[2J\nSTREAM=media 2 RTP\n"
		"MESSAGE=call-id \"c?1\", tag \"t?[2J\", media 2 RTP: hello?PRIORITY=0\n");
	log_info("nobody's");
	n = recv(fd, got, sizeof(got) - 1, 0);
	assert_true(n > 0);
	got[n] = 0;
	assert_string_equal(
		got, "PRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=me\nMESSAGE=nobody's\n");
	assert_int_equal(heard(text, sizeof(text)), 0);
	/* The log does not wait for a journal that does not read. Without a journal no line is
	 * lost. */
	listen_in();
	for (int i = 0; i < 400; i++)
		log_warn("more");
	close(fd);
	log_warn("as text");
	heard(text, sizeof(text));
	assert_non_null(strstr(text, " me warning: as text\n"));
	log_open("me", LOG_INFO, 1);
	unlink(at.sun_path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_one_line_whoever_wrote_it),
		cmocka_unit_test(the_journal_gets_fields),
		cmocka_unit_test(no_more_lines_than_a_log_bears),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
