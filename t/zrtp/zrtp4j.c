/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our ZRTP exchange against that of GNU ZRTP4J, a third implementation, in simulated time: all
 * combinations of common algorithms, in both roles, with a=zrtp-hash both ways and a second stream
 * in Multistream mode; lost messages; retained secrets that match, are one call behind or differ;
 * enrolment and SASrelay, in which each side is the gateway once. Keys and SAS must be equal at
 * both ends. Arguments: a folder for the terminal's cache, and the command that runs
 * zrtp4j/Peer.java: make check-zrtp. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/secmem.h"
#include "keying/zrtp.h"

#define MS       1000000ull
#define QUEUE    64u
#define TYPE     16u /* offset of a message's type in a packet */
#define LINE_MAX 4096u

/* ZRTP4J's names of our key agreements. It has neither X255 nor AES-192. */
static const char *const theirs[ZRTP_AGREEMENT_N] = {
	[ZRTP_EC25] = "EC25", [ZRTP_DH3K] = "DH3K", [ZRTP_EC38] = "EC38", [ZRTP_DH2K] = "DH2K"};

static FILE *to, *from; /* Peer.java */

struct stream { /* of ZRTP4J */
	bool secure, failed, verified, has_own, has_peer;
	uint32_t tag_bits;
	char sas[ZRTP_SAS_MAX], cipher[64], hash[2 * ZRTP_HASH + 1]; /* hash: of our Hello */
	char hello[2 * ZRTP_HASH + 1];
	char said[1024]; /* all that it reported */
	struct srtp_master own, peer;
	struct {
		uint8_t p[ZRTP_PACKET_MAX];
		uint16_t len;
	} to_us[QUEUE];
	uint32_t n;
};
static struct stream streams[2];

struct one { /* an exchange */
	uint8_t alg[ZRTP_KINDS];
	const char *role; /* of ZRTP4J: see Peer.java */
	bool we_begin, wrong_hash, lossy, more;
	bool cache, enrol; /* ours */
	struct zrtp_secrets *known;
	bool has;
};

struct end { /* our side */
	struct zrtp *z;
	struct zrtp_config cfg;
	struct zrtp_prefs prefs;
	const struct one *o;
	uint64_t ms;
	uint32_t lost[2]; /* kinds of messages that were lost once, by direction */
};

/* --- Peer.java -------------------------------------------------------------------------------- */

static void run_peer(char **argv)
{
	int in[2], out[2];

	if (pipe(in) || pipe(out))
		abort();
	if (fork() == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
	if (!to || !from)
		abort();
}

static uint32_t unhex(uint8_t *out, uint32_t cap, const char *hex)
{
	uint32_t n = 0;

	while (n < cap && hex[0] > ' ' && hex[1] > ' ') {
		out[n++] = (uint8_t)strtoul((const char[3]){hex[0], hex[1], 0}, NULL, 16);
		hex += 2;
	}
	return n;
}

static void take_keys(struct stream *s, struct srtp_master *m, const char *text)
{
	const char *salt = strchr(text, ' ') + 1;

	unhex(m->key, sizeof(m->key), text);
	unhex(m->salt, sizeof(m->salt), salt);
	s->tag_bits = (uint32_t)strtoul(strchr(salt, ' '), NULL, 10);
}

static void take_result(struct stream *s, char *text)
{
	char verified[8];

	text[strcspn(text, "\n")] = 0;
	if (memcmp(text, "send ", 5) == 0 && s->n < QUEUE) {
		s->to_us[s->n].len =
			(uint16_t)unhex(s->to_us[s->n].p, sizeof(s->to_us[0].p), text + 5);
		s->n++;
	} else if (memcmp(text, "tx ", 3) == 0) {
		take_keys(s, &s->own, text + 3);
		s->has_own = true;
	} else if (memcmp(text, "rx ", 3) == 0) {
		take_keys(s, &s->peer, text + 3);
		s->has_peer = true;
	} else if (memcmp(text, "hello ", 6) == 0) {
		(void)sscanf(text, "hello 1.10 %64s", s->hello);
	} else if (sscanf(text, "secure %31s %7s %63s 1.10 %64s", s->sas, verified, s->cipher,
			   s->hash) == 4) {
		s->secure = true;
		s->verified = strcmp(verified, "true") == 0;
	} else {
		s->failed |= memcmp(text, "failed", 6) == 0;
		snprintf(s->said + strlen(s->said), sizeof(s->said) - strlen(s->said), "%s ", text);
	}
}

/* Sends a command, and takes all results of it. */
__attribute__((format(printf, 1, 2))) static void ask(const char *format, ...)
{
	static char line[LINE_MAX];
	va_list args;

	va_start(args, format);
	vfprintf(to, format, args);
	va_end(args);
	fputc('\n', to);
	fflush(to);
	while (fgets(line, sizeof(line), from) && strcmp(line, ".\n") != 0)
		take_result(&streams[line[0] == '1'], line + 2);
	if (feof(from)) {
		printf("Peer.java ended\n");
		exit(1);
	}
}

static void tell(uint32_t number, const uint8_t *p, int len)
{
	static char hex[2 * ZRTP_PACKET_MAX + 1];

	for (int i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", p[i]);
	ask("packet %u %s", number, hex);
}

/* --- Exchanges -------------------------------------------------------------------------------- */

/* ZRTP4J commits if a HelloACK arrives after our Hello, and so do we. lossy: the first packet of
 * each kind is lost. */
static bool is_lost(struct end *e, const uint8_t *p, bool to_us)
{
	static const char kinds[][9] = {"Hello   ", "Commit  ", "DHPart1 ", "DHPart2 ", "Confirm1",
		"Confirm2", "Conf2ACK", "SASrelay", "RelayACK"};

	if (to_us != e->o->we_begin && memcmp(p + TYPE, "HelloACK", 8) == 0)
		return true;
	for (uint32_t i = 0; e->o->lossy && i < ARRAY_LEN(kinds); i++) {
		if (memcmp(p + TYPE, kinds[i], 8) != 0 || e->lost[to_us] & 1u << i)
			continue;
		e->lost[to_us] |= 1u << i;
		return true;
	}
	return false;
}

/* Packets both ways, until none is left, and 10 ms. */
static void step(struct end *e, uint32_t number)
{
	struct stream *s = &streams[number];
	uint8_t p[ZRTP_PACKET_MAX];
	bool any;
	int n;

	e->ms += 10;
	ask("time %" PRIu64, e->ms);
	zrtp_tick(e->z, e->ms * MS);
	do {
		any = s->n;
		for (uint32_t i = 0; i < s->n; i++)
			if (!is_lost(e, s->to_us[i].p, true))
				(void)zrtp_take(e->z, s->to_us[i].p, s->to_us[i].len, e->ms * MS);
		s->n = 0;
		if (zrtp_state(e->z) == ZRTP_WANTS_SECRETS)
			zrtp_secrets(e->z, e->o->has ? e->o->known : NULL, e->ms * MS);
		while ((n = zrtp_next(e->z, p, sizeof(p))) > 0) {
			any = true;
			if (!is_lost(e, p, false))
				tell(number, p, n);
		}
	} while (any);
}

static bool talk(struct end *e, uint32_t number)
{
	const struct stream *s = &streams[number];

	for (uint32_t i = 0; i < 1500 && zrtp_state(e->z) != ZRTP_FAILED && !s->failed; i++) {
		if (s->secure && s->has_own && s->has_peer && zrtp_state(e->z) == ZRTP_OPEN)
			return true;
		step(e, number);
	}
	return false;
}

static bool same_keys(const struct end *e, const struct stream *s)
{
	struct srtp_master rx, tx;

	return zrtp_keys(e->z, &rx, &tx) == 0 && memcmp(rx.key, s->own.key, sizeof(rx.key)) == 0 &&
		memcmp(tx.key, s->peer.key, sizeof(tx.key)) == 0 &&
		memcmp(rx.salt, s->own.salt, sizeof(rx.salt)) == 0 &&
		memcmp(tx.salt, s->peer.salt, sizeof(tx.salt)) == 0 &&
		s->tag_bits == (e->o->alg[ZRTP_K_TAG] == ZRTP_HS32 ? 32 : 80);
}

/* Whether ZRTP4J received the Hello whose hash our SDP has. */
static bool saw_hello(const struct end *e, const struct stream *s)
{
	uint8_t hash[ZRTP_HASH], seen[ZRTP_HASH];
	struct zrtp_config c = e->cfg;

	return zrtp_hello_hash(hash, &c) == 0 && unhex(seen, sizeof(seen), s->hash) == ZRTP_HASH &&
		memcmp(hash, seen, sizeof(hash)) == 0;
}

static const char *algorithms(const struct one *o)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s,%s,%s,%s,MULT,%s", o->alg[ZRTP_K_HASH] ? "S384" : "S256",
		o->alg[ZRTP_K_CIPHER] == ZRTP_AES3 ? "AES3" : "AES1",
		o->alg[ZRTP_K_TAG] == ZRTP_HS32 ? "HS32" : "HS80", theirs[o->alg[ZRTP_K_AGREEMENT]],
		o->alg[ZRTP_K_SAS] == ZRTP_B256 ? "B256" : "B32");
	return text;
}

/* Makes both sides of a stream. first: NULL, or ours, of the same call. */
static void begin(struct end *e, const struct one *o, struct end *first)
{
	const uint32_t number = first != NULL;
	struct stream *s = &streams[number];

	memset(s, 0, sizeof(*s));
	*e = (struct end){.o = o, .ms = first ? first->ms : 0};
	for (int k = 0; k < ZRTP_KINDS; k++) {
		e->prefs.n[k] = 1;
		e->prefs.list[k][0] = o->alg[k];
	}
	e->prefs.list[ZRTP_K_AGREEMENT][e->prefs.n[ZRTP_K_AGREEMENT]++] = ZRTP_MULT;
	e->cfg = (struct zrtp_config){.ssrc = 1,
		.prefs = &e->prefs,
		.zid = (const uint8_t *)"gateway..zid",
		.not_mitm = strcmp(o->role, "gateway") == 0 || strcmp(o->role, "enroller") == 0,
		.cache = o->cache,
		.enrol = o->enrol};
	if (secmem_random(e->cfg.seed, sizeof(e->cfg.seed)))
		abort();
	ask("time %" PRIu64, e->ms);
	ask("%s %u %s %s", first ? "more" : "new", 2 + number, algorithms(o), o->role);
	e->cfg.bound = unhex(e->cfg.bound_hash, ZRTP_HASH, s->hello) == ZRTP_HASH;
	e->cfg.bound_hash[0] ^= o->wrong_hash;
	if (zrtp_create(&e->z, &e->cfg) || (first && zrtp_multi(e->z, first->z)))
		abort();
	zrtp_start(e->z, e->ms * MS);
	ask("start %u", number);
}

static bool another_stream(struct end *first)
{
	struct end e;
	bool good;

	begin(&e, first->o, first);
	good = talk(&e, 1) && same_keys(&e, &streams[1]) && saw_hello(&e, &streams[1]) &&
		strcmp(zrtp_algorithm(e.z, ZRTP_K_AGREEMENT), "Mult") == 0 &&
		zrtp_initiated(e.z) == e.o->we_begin;
	first->ms = e.ms;
	zrtp_destroy(e.z);
	return good;
}

static bool chose(const struct end *e)
{
	static const char *const cipher[] = {
		[ZRTP_AES1] = "AES-CM-128", [ZRTP_AES3] = "AES-CM-256"};
	const uint8_t *alg = e->o->alg;

	return strcmp(zrtp_algorithm(e->z, ZRTP_K_HASH),
		       alg[ZRTP_K_HASH] == ZRTP_S384 ? "S384" : "S256") == 0 &&
		memcmp(zrtp_algorithm(e->z, ZRTP_K_AGREEMENT), theirs[alg[ZRTP_K_AGREEMENT]], 2) ==
		0 &&
		memcmp(streams[0].cipher, cipher[alg[ZRTP_K_CIPHER]], 10) == 0;
}

static void complain(const struct end *e, const char *what)
{
	printf("%s%s: FAILED: %s, %s; SAS \"%s\" and \"%s\"; %s\n", algorithms(e->o),
		e->o->we_begin ? ", initiator" : ", responder", what,
		zrtp_failure_text(zrtp_failure(e->z)), zrtp_sas(e->z), streams[0].sas,
		streams[0].said);
}

/* The exchange, and all that must be equal at both ends. */
static bool agree(struct end *e)
{
	const struct stream *s = &streams[0];
	const char *what = !talk(e, 0)                   ? "no keys"
		: !same_keys(e, s)                       ? "other keys"
		: strcmp(zrtp_sas(e->z), s->sas) != 0    ? "another SAS"
		: !saw_hello(e, s)                       ? "another Hello"
		: !chose(e)                              ? "other algorithms"
		: zrtp_initiated(e->z) != e->o->we_begin ? "another role"
		: zrtp_sas_verified(e->z) != s->verified ? "verified at one end"
		: e->o->more && !another_stream(e)       ? "the second stream"
							 : NULL;

	if (what)
		complain(e, what);
	return !what;
}

static bool try(const struct one *o)
{
	struct end e;
	bool good;

	begin(&e, o, NULL);
	good = o->wrong_hash ? !talk(&e, 0) : agree(&e);
	zrtp_destroy(e.z);
	return good;
}

/* --- All combinations ------------------------------------------------------------------------- */

/* It commits to AES-128 with DH2k, whatever its settings say, and takes P-384 with SHA-384 only. */
static bool is_known(const struct one *o)
{
	return o->alg[ZRTP_K_CIPHER] != ZRTP_AES2 && theirs[o->alg[ZRTP_K_AGREEMENT]] &&
		(o->alg[ZRTP_K_AGREEMENT] != ZRTP_EC38 || o->alg[ZRTP_K_HASH] == ZRTP_S384) &&
		(o->we_begin || o->alg[ZRTP_K_AGREEMENT] != ZRTP_DH2K ||
			o->alg[ZRTP_K_CIPHER] == ZRTP_AES1);
}

static uint32_t combinations(uint32_t *done)
{
	static const uint8_t count[ZRTP_KINDS] = {
		ZRTP_HASH_N, ZRTP_CIPHER_N, ZRTP_TAG_N, ZRTP_PRSH, ZRTP_SAS_N};
	uint32_t n = 2, failed = 0;

	for (int k = 0; k < ZRTP_KINDS; k++)
		n *= count[k];
	for (uint32_t i = 0; i < n; i++) {
		struct one o = {.role = "", .we_begin = i & 1, .more = true};
		uint32_t rest = i / 2;

		for (int k = 0; k < ZRTP_KINDS; k++) {
			o.alg[k] = (uint8_t)(rest % count[k]);
			rest /= count[k];
		}
		if (!is_known(&o))
			continue;
		++*done;
		failed += !try(&o);
	}
	return failed;
}

/* --- Secrets ---------------------------------------------------------------------------------- */

static char cache_file[256], older_file[256];

/* The terminal forgets what it knows: another ZID, and no secrets. */
static void forget(void)
{
	unlink(cache_file);
	ask("cache %s", cache_file);
}

static void copy(const char *source, const char *target)
{
	FILE *in = fopen(source, "r"), *out = fopen(target, "w");
	char buffer[16384];
	size_t n = in ? fread(buffer, 1, sizeof(buffer), in) : 0;

	if (!n || !out || fwrite(buffer, 1, n, out) != n || fclose(out))
		abort();
	fclose(in);
}

/* A call after which both caches have new secrets. matches: what ZRTP4J says of the old ones. The
 * exchange goes on in e. */
static bool call(struct end *e, struct one *o, const char *matches)
{
	bool mismatch = strcmp(matches, "NoExpectedRSMatch") == 0, good;
	uint32_t seconds;

	begin(e, o, NULL);
	good = agree(e);
	if (good && (!strstr(streams[0].said, matches) || zrtp_mismatched(e->z) != mismatch)) {
		complain(e, matches);
		good = false;
	}
	o->has = zrtp_new_secrets(e->z, o->known, &seconds) == 0 && seconds == UINT32_MAX;
	return good && o->has;
}

static bool whole_call(struct one *o, const char *matches, bool verified)
{
	struct end e;
	bool good = call(&e, o, matches) && zrtp_sas_verified(e.z) == verified;

	zrtp_destroy(e.z);
	return good;
}

static bool retained(bool we_begin, uint8_t agreement)
{
	struct zrtp_secrets known = {0}, old;
	struct one o = {.role = "", .cache = true, .known = &known, .we_begin = we_begin};
	bool good;

	o.alg[ZRTP_K_AGREEMENT] = agreement;
	forget();
	good = whole_call(&o, "[WarningNoRSMatch]", false);
	/* Both users compare the SAS: the next call is verified at both ends. */
	ask("verify 0");
	known.verified = true;
	good = good && whole_call(&o, "[InfoRSMatchFound]", true);
	/* One end lost the last update: first we, then ZRTP4J. */
	old = known;
	good = good && whole_call(&o, "[InfoRSMatchFound]", true);
	ask("keep 0");
	known = old;
	copy(cache_file, older_file);
	good = good && whole_call(&o, "[InfoRSMatchFound]", true);
	copy(older_file, cache_file);
	ask("cache %s", cache_file);
	good = good && whole_call(&o, "[InfoRSMatchFound]", true);
	/* Other secrets: an attack, or a lost cache. */
	known.rs1[0] ^= 1;
	known.rs2[0] ^= 1;
	good = good && whole_call(&o, "NoExpectedRSMatch", false);
	return good && whole_call(&o, "[InfoRSMatchFound]", false);
}

/* Until the SAS of the far side is acknowledged. */
static bool relayed(struct end *e)
{
	for (uint32_t i = 0; i < 1000; i++) {
		step(e, 0);
		if (zrtp_deadline(e->z) == UINT64_MAX && zrtp_state(e->z) == ZRTP_OPEN && i > 200)
			return true;
	}
	complain(e, "SASrelay");
	return false;
}

/* We are the gateway: the terminal enrols, and shows the SAS of the far side in the next call. */
static bool we_relay(bool we_begin)
{
	struct zrtp_secrets known = {0};
	struct one o = {.role = "terminal",
		.cache = true,
		.enrol = true,
		.known = &known,
		.we_begin = we_begin,
		.lossy = true};
	uint8_t far_hash[ZRTP_SAS_HASH];
	char far_sas[ZRTP_SAS_MAX];
	struct end e;
	bool good;

	forget();
	good = call(&e, &o, "[WarningNoRSMatch]") && strstr(streams[0].said, "EnrollmentOk") &&
		known.has_pbx;
	if (good) {
		memcpy(far_hash, zrtp_sas_hash(e.z), sizeof(far_hash));
		snprintf(far_sas, sizeof(far_sas), "%s", zrtp_sas(e.z));
	}
	zrtp_destroy(e.z);
	if (!good)
		return false;
	o.enrol = false;
	good = call(&e, &o, "[InfoRSMatchFound]") && zrtp_enrolled(e.z) &&
		zrtp_relay_sas(e.z, &(struct zrtp_far_sas){.hash = far_hash, .kind = ZRTP_B32},
			e.ms * MS) == 0 &&
		relayed(&e) && strcmp(streams[0].sas, far_sas) == 0 &&
		strcmp(zrtp_sas(e.z), far_sas) != 0 && strstr(streams[0].cipher, "/SASviaMitM");
	zrtp_destroy(e.z);
	return good;
}

/* ZRTP4J is the gateway, and we are the terminal. */
static bool they_relay(bool we_begin)
{
	static const char far[] =
		"5a01020304050607080910111213141516171819202122232425262728293031";
	struct zrtp_secrets known = {0};
	struct one o = {.role = "enroller", .cache = true, .known = &known, .we_begin = we_begin};
	uint8_t hash[ZRTP_SAS_HASH];
	struct end e;
	bool good;

	forget();
	good = call(&e, &o, "[WarningNoRSMatch]") && zrtp_peer_is_mitm(e.z) && known.has_pbx;
	zrtp_destroy(e.z);
	if (!good)
		return false;
	o.role = "gateway";
	good = call(&e, &o, "[InfoRSMatchFound]") && zrtp_enrolled(e.z);
	ask("relay 0 %s", far);
	unhex(hash, sizeof(hash), far);
	good = good && relayed(&e) && zrtp_relayed_sas(e.z) &&
		memcmp(zrtp_relayed_sas(e.z), hash, sizeof(hash)) == 0;
	zrtp_destroy(e.z);
	return good;
}

/* --- All -------------------------------------------------------------------------------------- */

static bool check(bool good, const char *what)
{
	if (!good)
		printf("%s: FAILED: %s\n", what, streams[0].said);
	return good;
}

int main(int argc, char **argv)
{
	struct one wrong = {.role = "", .wrong_hash = true}, lossy = {.role = "", .lossy = true};
	uint32_t done = 0, failed;

	if (argc < 3)
		return 2;
	snprintf(cache_file, sizeof(cache_file), "%s/terminal.zid", argv[1]);
	snprintf(older_file, sizeof(older_file), "%s/older.zid", argv[1]);
	run_peer(argv + 2);
	forget();
	failed = combinations(&done);
	for (int i = 0; i < 2; i++) {
		wrong.we_begin = lossy.we_begin = i;
		failed += !check(try(&wrong), "wrong hash");
		failed += !check(try(&lossy), "lost messages");
		failed += !check(retained(i, ZRTP_EC25), "retained secrets");
		failed += !check(retained(i, ZRTP_DH3K), "retained secrets");
		failed += !check(we_relay(i), "we are the gateway");
		failed += !check(they_relay(i), "it is the gateway");
		done += 6;
	}
	printf("%u tests with GNU ZRTP4J, %u failed\n", done, failed);
	fprintf(to, "end\n");
	fclose(to);
	return failed != 0;
}
