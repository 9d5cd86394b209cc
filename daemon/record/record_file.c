/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings on disk (record/record_file.h), by libpcap. The buffer is written in whole packets. If
 * a write fails, the file is cut after the last complete write, so that it stays readable, and
 * later packets follow there. */
#include "record/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	ETH_LEN = 14,
	IP4_LEN = 20,
	IP6_LEN = 40,
	UDP_LEN = 8,
	FRAME_MAX = 2048 + 64,
	BUFFER = 1 << 16
};

struct record_file {
	char pcap_path[RECORD_PATH_MAX + 8], text_path[RECORD_PATH_MAX + 8];
	enum record_format format;
	pcap_t *pcap;
	pcap_dumper_t *dump;
	FILE *text;
	bool made_pcap, made_text;       /* by us */
	off_t good;                      /* the file is complete up to here */
	uint64_t pending, pending_bytes; /* packets after it */
	struct record_counts counts;
	char buffer[BUFFER];
};

static FILE *create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

static int files_open(struct record_file *f)
{
	FILE *file = create(f->pcap_path);

	if (!file)
		return -errno;
	f->made_pcap = true;
	setvbuf(file, f->buffer, _IOFBF, sizeof(f->buffer));
	f->pcap =
		pcap_open_dead_with_tstamp_precision(f->format == RECORD_ETH ? DLT_EN10MB : DLT_RAW,
			FRAME_MAX, PCAP_TSTAMP_PRECISION_NANO);
	f->dump = f->pcap ? pcap_dump_fopen(f->pcap, file) : NULL;
	if (!f->dump) {
		fclose(file);
		return -EIO;
	}
	f->text = create(f->text_path);
	f->made_text = f->text != NULL;
	return f->text ? record_file_flush(f) : -errno;
}

int record_file_open(struct record_file **out, const char *path, enum record_format format)
{
	struct record_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->format = format;
	snprintf(f->pcap_path, sizeof(f->pcap_path), "%s.pcap", path);
	snprintf(f->text_path, sizeof(f->text_path), "%s.txt", path);
	err = files_open(f);
	if (err) {
		record_file_close(f, true);
		return err;
	}
	*out = f;
	return 0;
}

static uint32_t sum16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return len & 1 ? sum + ((uint32_t)p[len - 1] << 8) : sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* RFC 791 or RFC 8200 before RFC 768, as if the terminal had sent plain media. */
static size_t headers(uint8_t *p, const struct endpoint *from, const struct endpoint *to,
	const uint8_t *payload, uint32_t len)
{
	size_t addr = from->family == AF_INET ? 4 : 16,
	       ip = from->family == AF_INET ? IP4_LEN : IP6_LEN;
	uint8_t *udp = p + ip;
	uint32_t sum;

	memset(p, 0, ip + UDP_LEN);
	put_be16(udp, from->port);
	put_be16(udp + 2, to->port);
	put_be16(udp + 4, (uint16_t)(UDP_LEN + len));
	if (from->family == AF_INET) {
		p[0] = 0x45;
		put_be16(p + 2, (uint16_t)(IP4_LEN + UDP_LEN + len));
		put_be16(p + 6, 0x4000);
		p[8] = 64;
		p[9] = IPPROTO_UDP;
		memcpy(p + 12, from->addr, 4);
		memcpy(p + 16, to->addr, 4);
		put_be16(p + 10, folded(sum16(0, p, IP4_LEN)));
	} else {
		p[0] = 0x60;
		put_be16(p + 4, (uint16_t)(UDP_LEN + len));
		p[6] = IPPROTO_UDP;
		p[7] = 64;
		memcpy(p + 8, from->addr, 16);
		memcpy(p + 24, to->addr, 16);
	}
	sum = sum16(IPPROTO_UDP + UDP_LEN + len, from->addr, addr);
	sum = folded(sum16(sum16(sum16(sum, to->addr, addr), udp, UDP_LEN), payload, len));
	put_be16(udp + 6, (uint16_t)(sum ? sum : 0xffff));
	return ip + UDP_LEN;
}

int record_file_packet(struct record_file *f, uint64_t t_ns, const struct endpoint *from,
	const struct endpoint *to, const uint8_t *payload, uint32_t len)
{
	uint8_t frame[FRAME_MAX + ETH_LEN];
	size_t n = 0;
	struct pcap_pkthdr h = {.ts = {.tv_sec = (time_t)(t_ns / NS_PER_SEC),
					.tv_usec = (suseconds_t)(t_ns % NS_PER_SEC)}};

	if (len > FRAME_MAX - IP6_LEN - UDP_LEN)
		return -EMSGSIZE;
	if (f->format == RECORD_ETH) {
		memset(frame, 0, ETH_LEN);
		put_be16(frame + 12, from->family == AF_INET ? 0x0800 : 0x86dd);
		n = ETH_LEN;
	}
	n += headers(frame + n, from, to, payload, len);
	memcpy(frame + n, payload, len);
	h.caplen = h.len = (uint32_t)(n + len);
	pcap_dump((u_char *)f->dump, &h, frame);
	f->pending++;
	f->pending_bytes += len;
	f->counts.packets++;
	f->counts.bytes += len;
	/* Flush before stdio would: then the position of the last whole packet is known. */
	return __fpending(pcap_dump_file(f->dump)) + sizeof(frame) + 64 > BUFFER
		? record_file_flush(f)
		: 0;
}

int record_file_flush(struct record_file *f)
{
	FILE *file = pcap_dump_file(f->dump);
	int err;

	errno = 0;
	if (fflush(file) == 0 && !ferror(file)) {
		f->good = ftello(file);
		f->pending = f->pending_bytes = 0;
		return 0;
	}
	err = errno ? -errno : -EIO;
	__fpurge(file);
	clearerr(file);
	if (ftruncate(fileno(file), f->good) || lseek(fileno(file), f->good, SEEK_SET) < 0)
		err = -EIO;
	fseeko(file, f->good, SEEK_SET);
	f->counts.packets -= f->pending;
	f->counts.bytes -= f->pending_bytes;
	f->counts.lost += f->pending;
	f->pending = f->pending_bytes = 0;
	return err;
}

void record_file_note(struct record_file *f, struct str line)
{
	fprintf(f->text, STR_FMT "\n", STR_ARG(line));
	fflush(f->text);
	clearerr(f->text);
}

void record_file_counts(const struct record_file *f, struct record_counts *out)
{
	*out = f->counts;
}

void record_file_touch(struct record_file *f)
{
	(void)futimens(fileno(pcap_dump_file(f->dump)), NULL);
}

void record_file_lost(struct record_file *f, uint64_t packets)
{
	f->counts.lost += packets;
}

void record_file_close(struct record_file *f, bool discard)
{
	if (!f)
		return;
	if (f->dump) {
		(void)record_file_flush(f);
		if (f->text)
			fprintf(f->text, "packets: %llu\nbytes: %llu\nlost: %llu\n",
				(unsigned long long)f->counts.packets,
				(unsigned long long)f->counts.bytes,
				(unsigned long long)f->counts.lost);
		pcap_dump_close(f->dump);
	}
	if (f->pcap)
		pcap_close(f->pcap);
	if (f->text)
		fclose(f->text);
	/* Keep files of others that existed before. */
	if (discard && f->made_pcap)
		unlink(f->pcap_path);
	if (discard && f->made_text)
		unlink(f->text_path);
	free(f);
}
