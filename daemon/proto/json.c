/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON (RFC 8259), read in one pass into the pool; strings without escapes are slices of the
 * message. Of a repeated key the last value counts. Pure.
 *
 * We parse it ourselves because the usual library writes out of bounds when memory runs out, and
 * any HTTP client can send messages. We write it ourselves because tags and Call-IDs may be invalid
 * UTF-8, and the reply must be valid JSON. */
#include "proto/json.h"
#include "proto/ngval.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "proto/utf8.h"

/* --- Reading ------------------------------------------------------------------------------- */

struct reader {
	struct pool *pool;
	struct str msg;
	size_t at;
	uint32_t values;
};

static int peek(const struct reader *r)
{
	return r->at < r->msg.len ? (unsigned char)r->msg.s[r->at] : -1;
}

static bool take(struct reader *r, char c)
{
	bool is = peek(r) == (unsigned char)c;

	r->at += is;
	return is;
}

static void skip_blanks(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r' || peek(r) == '\n')
		r->at++;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* --- Strings */

/* Four hexadecimal digits; -1: they are none. */
static int32_t hex4(const char *p, size_t len)
{
	int32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		char c = i < len ? p[i] : 0;
		int d = is_digit(c)            ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static size_t put_utf8(char *out, uint32_t c)
{
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = len; i > 1; i--, c >>= 6)
		out[i - 1] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[len] | c);
	return len;
}

/* Decodes the escape after a backslash at p. Returns its length, 0 if it is invalid. The result is
 * never longer than the escape. */
static size_t unescape(const char *p, size_t len, char *out, size_t *n)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *known = len && p[0] ? strchr(from, p[0]) : NULL;
	int32_t c, low;

	if (known) {
		out[(*n)++] = to[known - from];
		return 1;
	}
	c = len && p[0] == 'u' ? hex4(p + 1, len - 1) : -1;
	if (c < 0 || (c >= 0xdc00 && c < 0xe000))
		return 0;
	if (c < 0xd800 || c >= 0xe000) {
		*n += put_utf8(out + *n, (uint32_t)c);
		return 5;
	}
	low = len >= 7 && p[5] == '\\' && p[6] == 'u' ? hex4(p + 7, len - 7) : -1;
	if (low < 0xdc00 || low >= 0xe000)
		return 0;
	*n += put_utf8(
		out + *n, 0x10000 + ((uint32_t)(c - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
	return 11;
}

/* Called after the opening quote. *raw: the string with its escapes. Moves r->at after the closing
 * quote. */
static int find_end(struct reader *r, struct str *raw, bool *escaped)
{
	size_t start = r->at;

	*escaped = false;
	for (;;) {
		int c = peek(r);
		size_t n;

		if (c < 0x20) /* the end of the message, too */
			return -EBADMSG;
		if (c == '"')
			break;
		if (c == '\\')
			*escaped = true;
		n = c == '\\' ? 2 : utf8_len((struct str){r->msg.s + r->at, r->msg.len - r->at});
		if (n == 0 || n > r->msg.len - r->at)
			return -EBADMSG;
		r->at += n;
	}
	*raw = (struct str){r->msg.s + start, r->at - start};
	r->at++;
	return 0;
}

static int read_string(struct reader *r, struct str *out)
{
	struct str raw;
	bool escaped;
	size_t n = 0;
	char *text;
	int err = find_end(r, &raw, &escaped);

	*out = raw;
	if (err || !escaped)
		return err;
	text = pool_alloc(r->pool, raw.len);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < raw.len;) {
		size_t took;

		if (raw.s[i] != '\\') {
			text[n++] = raw.s[i++];
			continue;
		}
		took = unescape(raw.s + i + 1, raw.len - i - 1, text, &n);
		if (!took)
			return -EBADMSG;
		i += 1 + took;
	}
	*out = (struct str){text, n};
	return 0;
}

/* --- Numbers */

/* Digits, at least one. Their value, as far as it goes. */
static bool read_digits(struct reader *r, double *v, int *n)
{
	if (!is_digit(peek(r)))
		return false;
	for (*n = 0; is_digit(peek(r)); r->at++, ++*n)
		*v = *v * 10 + (peek(r) - '0');
	return true;
}

/* Cut to whole numbers. */
static int read_real(struct reader *r, bool minus, double v, int64_t *out)
{
	int fraction = 0, n;
	double exponent = 0;
	bool down = false;

	if (take(r, '.') && !read_digits(r, &v, &fraction))
		return -EBADMSG;
	if (take(r, 'e') || take(r, 'E')) {
		down = take(r, '-');
		if (!down)
			take(r, '+');
		if (!read_digits(r, &exponent, &n))
			return -EBADMSG;
	}
	exponent = (down ? -exponent : exponent) - fraction;
	if (v != 0)
		v = exponent < 0 ? v / pow(10, -exponent) : v * pow(10, exponent);
	v = minus ? -v : v;
	/* 2^63 is exact as a double, so this accepts exactly the values that fit. NaN fails. */
	if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0))
		return -EBADMSG;
	*out = (int64_t)v;
	return 0;
}

static int read_number(struct reader *r, int64_t *out)
{
	bool minus = take(r, '-');
	size_t start = r->at;
	struct str digits;
	double v = 0;
	uint64_t u;
	int n;

	if (!read_digits(r, &v, &n))
		return -EBADMSG;
	digits = (struct str){r->msg.s + start, r->at - start};
	if (digits.len > 1 && digits.s[0] == '0')
		return -EBADMSG;
	if (peek(r) == '.' || peek(r) == 'e' || peek(r) == 'E')
		return read_real(r, minus, v, out);
	if (str_to_u64(&u, digits, (uint64_t)INT64_MAX + minus))
		return -EBADMSG;
	*out = minus ? (int64_t)(0 - u) : (int64_t)u;
	return 0;
}

/* --- Values */

static int read_value(struct reader *r, struct ngval *v, unsigned depth);

/* Returns the new child, or the emptied existing one if the key is repeated. */
static int child(struct reader *r, struct ngval *parent, struct ngval **out)
{
	struct str key = STR_NONE;
	struct ngval *old = NULL;
	int err;

	if (parent->type == NGVAL_DICT) {
		err = take(r, '"') ? read_string(r, &key) : -EBADMSG;
		if (err)
			return err;
		if (key.len && memchr(key.s, 0, key.len))
			return -EBADMSG;
		skip_blanks(r);
		if (!take(r, ':'))
			return -EBADMSG;
		old = (struct ngval *)ngval_get(parent, key);
	}
	if (old)
		old->first = old->last = NULL;
	*out = old ? old : ngval_add_int(r->pool, parent, key, 0);
	return *out ? 0 : -ENOMEM;
}

static int read_children(struct reader *r, struct ngval *parent, char end, unsigned depth)
{
	struct ngval *v;
	int err = 0;

	if (depth == NGVAL_MAX_DEPTH)
		return -EBADMSG;
	r->at++; /* the bracket */
	skip_blanks(r);
	if (take(r, end))
		return 0;
	do {
		skip_blanks(r);
		err = child(r, parent, &v);
		err = err ? err : read_value(r, v, depth + 1);
		if (err)
			return err;
		skip_blanks(r);
	} while (take(r, ','));
	return take(r, end) ? 0 : -EBADMSG;
}

static int read_word(struct reader *r, struct ngval *v)
{
	static const struct {
		struct str word;
		enum ngval_type type;
		int64_t num;
	} words[] = {{{"true", 4}, NGVAL_INT, 1}, {{"false", 5}, NGVAL_INT, 0},
		{{"null", 4}, NGVAL_STR, 0}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct str rest = {r->msg.s + r->at, r->msg.len - r->at};

		if (!str_starts(rest, words[i].word))
			continue;
		r->at += words[i].word.len;
		v->type = words[i].type;
		v->num = words[i].num;
		v->str = STR("");
		return 0;
	}
	return -EBADMSG;
}

static int read_value(struct reader *r, struct ngval *v, unsigned depth)
{
	if (++r->values > JSON_MAX_VALUES)
		return -EBADMSG;
	skip_blanks(r);
	switch (peek(r)) {
	case '{':
		v->type = NGVAL_DICT;
		return read_children(r, v, '}', depth);
	case '[':
		v->type = NGVAL_LIST;
		return read_children(r, v, ']', depth);
	case '"':
		r->at++;
		v->type = NGVAL_STR;
		return read_string(r, &v->str);
	case 't':
	case 'f':
	case 'n':
		return read_word(r, v);
	default:
		v->type = NGVAL_INT;
		return read_number(r, &v->num);
	}
}

int json_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos)
{
	struct reader r = {.pool = p, .msg = msg};
	struct ngval *v = ngval_dict(p);
	int err = v ? read_value(&r, v, 0) : -ENOMEM;

	skip_blanks(&r);
	if (!err && r.at != msg.len)
		err = -EBADMSG;
	*pos = r.at;
	if (!err)
		*out = v;
	return err;
}

/* --- Writing ------------------------------------------------------------------------------- */

static void write_escaped(struct sbuf *b, unsigned char c)
{
	switch (c) {
	case '\n':
		sbuf_str(b, STR("\\n"));
		break;
	case '\r':
		sbuf_str(b, STR("\\r"));
		break;
	case '\t':
		sbuf_str(b, STR("\\t"));
		break;
	case '"':
	case '\\':
		sbuf_printf(b, "\\%c", c);
		break;
	default:
		sbuf_printf(b, "\\u%04x", c);
	}
}

/* is_key: a NUL is replaced too, since many readers take no NUL in keys. */
static void write_string(struct sbuf *b, struct str s, bool is_key)
{
	size_t done = 0, at = 0;

	sbuf_str(b, STR("\""));
	while (at < s.len) {
		unsigned char c = (unsigned char)s.s[at];
		size_t len = utf8_len((struct str){s.s + at, s.len - at});
		bool c1 = len == 2 && c == 0xc2 && (unsigned char)s.s[at + 1] < 0xa0;
		bool plain = len > 0 && c >= 0x20 && c != 0x7f && c != '"' && c != '\\' && !c1;

		if (plain) {
			at += len;
			continue;
		}
		sbuf_put(b, s.s + done, at - done);
		if (c1) /* U+0080 to U+009F: commands to a terminal that shows the JSON */
			c = (unsigned char)s.s[++at];
		if (len == 0 || (c == 0 && is_key))
			sbuf_str(b, STR("\xef\xbf\xbd"));
		else
			write_escaped(b, c);
		at++;
		done = at;
	}
	if (at > done)
		sbuf_put(b, s.s + done, at - done);
	sbuf_str(b, STR("\""));
}

static void new_line(struct sbuf *b, unsigned indent)
{
	sbuf_str(b, STR("\n"));
	for (unsigned i = 0; i < indent; i++)
		sbuf_str(b, STR("  "));
}

static void write_value(struct sbuf *b, const struct ngval *v, bool pretty, unsigned indent)
{
	bool dict = v->type == NGVAL_DICT;

	if (v->type == NGVAL_STR) {
		write_string(b, v->str, false);
		return;
	}
	if (v->type == NGVAL_INT) {
		sbuf_printf(b, "%" PRId64, v->num);
		return;
	}
	sbuf_str(b, dict ? STR("{") : STR("["));
	for (const struct ngval *c = v->first; c && !b->err; c = c->next) {
		if (c != v->first)
			sbuf_str(b, STR(","));
		if (pretty)
			new_line(b, indent + 1);
		if (dict) {
			write_string(b, c->key, true);
			sbuf_str(b, pretty ? STR(": ") : STR(":"));
		}
		write_value(b, c, pretty, indent + 1);
	}
	if (pretty && v->first)
		new_line(b, indent);
	sbuf_str(b, dict ? STR("}") : STR("]"));
}

void json_write(struct sbuf *b, const struct ngval *v, bool pretty)
{
	if (!v) {
		b->err = b->err ? b->err : -ENOMEM; /* a tree that could not be built */
		return;
	}
	write_value(b, v, pretty, 0);
}
