// SPDX-License-Identifier: GPL-2.0-or-later
/* A plugin of qemu that counts how often each block of code runs between two marks (run.py cost
 * --exact). The load executes the marks: instructions without effect, whose last byte says which
 * (t/tool/srtpload.c). Writes a section for each pair: END and its number, then for each block its
 * address, instructions and executions. One processor only: counters have no lock. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From qemu's qemu-plugin.h, version 1 of the interface. Debian 12 does not package this header. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CB_NO_REGS, INLINE_ADD_U64 = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(
	qemu_plugin_id_t id, void (*fn)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(
	struct qemu_plugin_tb *tb, int op, void *counter, uint64_t n);
void qemu_plugin_register_vcpu_insn_exec_cb(
	struct qemu_plugin_insn *in, void (*fn)(unsigned, void *), int flags, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *in);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *in);

#define EXPORT __attribute__((visibility("default")))
EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

#define MARK_LEN 8u
static const uint8_t MARK[MARK_LEN - 1] = {0x0f, 0x1f, 0x84, 0x00, 0x78, 0x56, 0x34};
enum { MARK_END = 2 };

/* Blocks of two processes can have the same address. Those that differ in length are told apart. */
struct block {
	uint64_t at, count;
	size_t n; /* instructions */
	struct block *next;
};

#define BUCKETS (1u << 20)
static struct block *table[BUCKETS];
static FILE *out;
static int sections;

static void marked(unsigned cpu, void *which)
{
	bool end = (uintptr_t)which == MARK_END;

	(void)cpu;
	if (end)
		fprintf(out, "END %d\n", ++sections);
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct block *b = table[i]; b; b = b->next) {
			if (end && b->count)
				fprintf(out, "%" PRIx64 " %zu %" PRIu64 "\n", b->at, b->n,
					b->count);
			b->count = 0;
		}
	fflush(out);
}

static struct block *block_of(uint64_t at, size_t n)
{
	struct block **b = &table[at * 0x9e3779b97f4a7c15u >> 44];

	while (*b && ((*b)->at != at || (*b)->n != n))
		b = &(*b)->next;
	if (!*b) {
		*b = calloc(1, sizeof(**b));
		if (!*b)
			abort();
		(*b)->at = at;
		(*b)->n = n;
	}
	return *b;
}

/* A block that an exception leaves counts as a whole. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *in = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(in);

		if (qemu_plugin_insn_size(in) == MARK_LEN && !memcmp(code, MARK, sizeof(MARK)))
			qemu_plugin_register_vcpu_insn_exec_cb(
				in, marked, CB_NO_REGS, (void *)(uintptr_t)code[MARK_LEN - 1]);
	}
	qemu_plugin_register_vcpu_tb_exec_inline(
		tb, INLINE_ADD_U64, &block_of(qemu_plugin_tb_vaddr(tb), n)->count, 1);
}

/* out=FILE */
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4) != 0)
		return -1;
	out = fopen(argv[0] + 4, "w");
	if (!out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
