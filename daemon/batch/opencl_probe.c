/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tries kernels in a child process first. LLVM calls abort() if it cannot select an instruction,
 * which must not end the daemon. Called by the control thread at start, before other threads exist.
 * The child's results stay in the OpenCL implementation's cache, so later trials are fast. */
#include "batch/opencl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A compiler gets a minute of the processor, however busy the machine is. The clock only ends a
 * driver that sleeps for ever. */
enum { PROBE_CPU_SECONDS = 60, PROBE_SECONDS = 600, PROBES_MAX = 4 };

/* Without packets and buffers: the kernel is compiled, and returns at once. */
static bool compiles(const struct opencl_device *dev, const struct opencl_source *src,
	const struct opencl_shape *shape)
{
	const cl_mem none = NULL;
	const cl_uint n = 0;
	const struct xc_place place = {.n = 0};
	const cl_ulong at = (uintptr_t)&place;
	size_t one = 1;
	char err[256];
	cl_program program;
	cl_int res;
	cl_context ctx = clCreateContext(NULL, 1, &dev->id, NULL, NULL, &res);
	cl_command_queue cq = ctx ? clCreateCommandQueue(ctx, dev->id, 0, &res) : NULL;
	cl_kernel k;

	if (!cq ||
		opencl_build(&program, &(struct opencl_build){ctx, dev->id, src, shape, NULL}, err,
			sizeof(err)))
		return false;
	k = clCreateKernel(
		program, shape->by_address ? "xc_recrypt_place" : "xc_recrypt_batch", &res);
	if (!res && shape->by_address)
		res = clSetKernelArg(k, 0, sizeof(at), &at);
	for (cl_uint i = 0; !res && !shape->by_address && i < 7; i++)
		res = i == 1 ? clSetKernelArg(k, i, sizeof(n), &n)
			     : clSetKernelArg(k, i, sizeof(none), &none);
	if (!res)
		res = clEnqueueNDRangeKernel(cq, k, 1, NULL, &one, &one, 0, NULL, NULL);
	return !res && clFinish(cq) == CL_SUCCESS;
}

static _Noreturn void child(const struct opencl_device *dev, const struct opencl_source *src,
	const struct opencl_shape *shape)
{
	const struct rlimit none = {0, 0};
	const struct rlimit cpu = {PROBE_CPU_SECONDS, PROBE_CPU_SECONDS};
	int null = open("/dev/null", O_WRONLY);

	signal(SIGABRT, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &cpu);
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	alarm(PROBE_SECONDS);
	_exit(compiles(dev, src, shape) ? 0 : 1);
}

static bool compiled(pid_t pid)
{
	int status = -1;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool opencl_probe(const struct opencl_device *dev, const struct opencl_source *src,
	const struct opencl_shape *shape, unsigned n)
{
	pid_t pid[PROBES_MAX];
	bool all = n <= PROBES_MAX;

	for (unsigned i = 0; i < n && i < PROBES_MAX; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			child(dev, src, &shape[i]);
	}
	for (unsigned i = 0; i < n && i < PROBES_MAX; i++)
		all &= compiled(pid[i]);
	return all;
}
