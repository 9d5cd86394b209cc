/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seccomp(2), landlock(7) and resource limits. Forbidden calls fail with EPERM, so a library
 * that tries one without need continues. */
#include "codec/helper_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/caps.h"

#if defined(__x86_64__)
#define JAIL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define JAIL_ARCH AUDIT_ARCH_RISCV64
#else
#define JAIL_ARCH 0
#endif

enum {
	MEMORY = 512 << 20, /* bytes of address space */
	FILES = 64,
	NO_NAMESPACES = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		CLONE_NEWUTS | CLONE_NEWCGROUP,
};

/* For loading libraries, testing, and forking. Old calls that newer architectures do not have are
 * left out there. */
static const uint16_t load_calls[] = {
#ifdef __NR_access
	__NR_access, __NR_readlink, __NR_poll, __NR_alarm,
#endif
	__NR_read, __NR_write, __NR_openat, __NR_close, __NR_fstat, __NR_newfstatat, __NR_statx,
	__NR_lseek, __NR_munmap, __NR_mremap, __NR_brk, __NR_pread64, __NR_readlinkat,
	__NR_faccessat, __NR_faccessat2, __NR_getrandom, __NR_futex, __NR_sched_getaffinity,
	__NR_sched_yield, __NR_uname, __NR_sysinfo, __NR_clock_gettime, __NR_gettimeofday,
	__NR_set_robust_list, __NR_set_tid_address, __NR_rseq, __NR_wait4, __NR_waitid, __NR_exit,
	__NR_exit_group, __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn,
	__NR_sigaltstack, __NR_sendmsg, __NR_recvmsg, __NR_ppoll, __NR_pidfd_open, __NR_prctl,
	__NR_seccomp, __NR_getpid, __NR_getppid, __NR_gettid, __NR_getuid, __NR_geteuid,
	__NR_getgid, __NR_getegid, __NR_madvise, __NR_setitimer, __NR_getdents64, __NR_mmap,
	__NR_mprotect, __NR_fcntl, __NR_getcwd, __NR_membarrier};

static const uint16_t stream_calls[] = {__NR_read, __NR_write, __NR_munmap, __NR_mremap, __NR_brk,
	__NR_madvise, __NR_futex, __NR_exit, __NR_exit_group, __NR_rt_sigreturn, __NR_clock_gettime,
	__NR_gettid, __NR_getpid, __NR_sched_yield,
	__NR_sigaltstack /* AddressSanitizer, before a process ends */};

enum { MAX_CALLS = 80, MAX_FILTER = 2 * MAX_CALLS + 24 };

struct filter {
	struct sock_filter line[MAX_FILTER];
	unsigned short n;
};

static void emit(struct filter *f, struct sock_filter line)
{
	if (f->n < MAX_FILTER)
		f->line[f->n++] = line;
}

#define LOAD(member)                   \
	((struct sock_filter)BPF_STMT( \
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member)))
#define RETURN(what)         ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what))
#define JUMP(op, k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | (op) | BPF_K, k, yes, no))

static void allow(struct filter *f, uint32_t call)
{
	emit(f, JUMP(BPF_JEQ, call, 0, 1));
	emit(f, RETURN(SECCOMP_RET_ALLOW));
}

/* Allows a call unless an argument has one of these bits. */
static void allow_without(struct filter *f, uint32_t call, unsigned argument, uint32_t bits)
{
	emit(f, JUMP(BPF_JEQ, call, 0, 4));
	emit(f, LOAD(args[argument]));
	emit(f, JUMP(BPF_JSET, bits, 1, 0));
	emit(f, RETURN(SECCOMP_RET_ALLOW));
	emit(f, RETURN(SECCOMP_RET_ERRNO | EPERM));
}

static int install(struct filter *f)
{
	struct sock_fprog program = {.len = f->n, .filter = f->line};

	emit(f, RETURN(SECCOMP_RET_ERRNO | EPERM));
	program.len = f->n;
	if (f->n >= MAX_FILTER)
		return -E2BIG;
	return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}

static void begin(struct filter *f)
{
	f->n = 0;
	emit(f, LOAD(arch));
	emit(f, JUMP(BPF_JEQ, JAIL_ARCH, 1, 0));
	emit(f, RETURN(SECCOMP_RET_KILL_PROCESS));
	emit(f, LOAD(nr));
#ifdef __x86_64__
	emit(f, JUMP(BPF_JGE, 0x40000000, 0, 1)); /* the x32 calls */
	emit(f, RETURN(SECCOMP_RET_KILL_PROCESS));
#endif
}

/* --- Landlock --------------------------------------------------------------------------------- */

static void may_read(int rules, const char *path)
{
	struct landlock_path_beneath_attr a = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE |
			LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE,
		.parent_fd = open(path, O_PATH | O_CLOEXEC)};

	if (a.parent_fd < 0)
		return;
	if (syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0) &&
		errno == EINVAL) { /* a file has no entries */
		a.allowed_access &= ~(uint64_t)LANDLOCK_ACCESS_FS_READ_DIR;
		syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
	}
	close(a.parent_fd);
}

/* Denies all kinds of access of the first version but these. With plugin NULL it denies all. */
static bool limit_files(const char *plugin)
{
	static const char *const libraries[] = {
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"};
	struct landlock_ruleset_attr all = {.handled_access_fs = (1ULL << 13) - 1};
	char folder[512];
	char *slash = NULL;
	int rules = (int)syscall(__NR_landlock_create_ruleset, &all, sizeof(all), 0);
	bool done = false;

	if (rules < 0)
		return false;
	for (size_t i = 0; plugin && i < ARRAY_LEN(libraries); i++)
		may_read(rules, libraries[i]);
	snprintf(folder, sizeof(folder), "%s", plugin ? plugin : "");
	slash = strrchr(folder, '/');
	if (slash) {
		*slash = 0;
		may_read(rules, folder);
	}
	done = syscall(__NR_landlock_restrict_self, rules, 0) == 0;
	close(rules);
	return done;
}

/* --- Common to both stages -------------------------------------------------------------------- */

static void limit_resources(void)
{
	struct rlimit none = {0, 0}, files = {FILES, FILES};
#ifndef __SANITIZE_ADDRESS__ /* its shadow takes terabytes of addresses */
	struct rlimit memory = {MEMORY, MEMORY};

	setrlimit(RLIMIT_AS, &memory);
#endif
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	setrlimit(RLIMIT_NOFILE, &files);
}

int jail_load(const char *plugin, bool *landlock)
{
	struct filter f;

	if (JAIL_ARCH == 0)
		return -ENOTSUP;
	caps_limit(0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	*landlock = limit_files(plugin);
	limit_resources();
	begin(&f);
	for (size_t i = 0; i < ARRAY_LEN(load_calls); i++)
		allow(&f, load_calls[i]);
	allow_without(&f, __NR_clone, 0, NO_NAMESPACES);
	return install(&f);
}

static void allow_stream(struct filter *f)
{
	begin(f);
	for (size_t i = 0; i < ARRAY_LEN(stream_calls); i++)
		allow(f, stream_calls[i]);
	allow_without(f, __NR_mmap, 2, PROT_EXEC);
	allow_without(f, __NR_mprotect, 2, PROT_EXEC);
}

int jail_stream(void)
{
	struct filter f;

	allow_stream(&f);
	return install(&f);
}

int jail_file(uint32_t seconds)
{
	struct rlimit cpu = {seconds, seconds};
	struct filter f;

	if (JAIL_ARCH == 0)
		return -ENOTSUP;
	caps_limit(0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	(void)limit_files(NULL); /* the filter denies opening files, too */
	limit_resources();
	setrlimit(RLIMIT_CPU, &cpu);
	allow_stream(&f);
	allow(&f, __NR_lseek);
	return install(&f);
}
