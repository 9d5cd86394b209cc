/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out whether a device uses the process's own addresses, so that a dispatch needs no buffers.
 * OpenCL 2.0 calls this fine-grain system sharing. PoCL 3.1 does not report it, although its CPU
 * devices run kernels in the process; OpenCL 1.2 has no such property. So two trials decide, the
 * second only after the first succeeded. Called by the control thread only. */
#include "batch/opencl.h"

#include <stdlib.h>

#define PAGE 4096u

static const char *const text = "__kernel void where(__global ulong *p)\n"
				"{\n"
				"	*p = (ulong)p;\n"
				"}\n"
				"__kernel void there(ulong at)\n"
				"{\n"
				"	*(__global ulong *)at = ~at;\n"
				"}\n";

static cl_int run(cl_command_queue cq, cl_program p, const char *name, size_t len, const void *arg)
{
	const size_t one = 1;
	cl_int res;
	cl_kernel k = clCreateKernel(p, name, &res);

	if (!k)
		return res;
	res = clSetKernelArg(k, 0, len, arg);
	if (!res)
		res = clEnqueueNDRangeKernel(cq, k, 1, NULL, &one, &one, 0, NULL, NULL);
	if (!res)
		res = clFinish(cq);
	clReleaseKernel(k);
	return res;
}

/* Asks a kernel for the address of a buffer made of our memory. */
static bool buffer_stays(cl_context ctx, cl_command_queue cq, cl_program p, cl_ulong *own)
{
	cl_ulong said = 0;
	cl_int res;
	cl_mem m = clCreateBuffer(ctx, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, PAGE, own, &res);

	if (!m)
		return false;
	res = run(cq, p, "where", sizeof(m), &m);
	if (!res)
		res = clEnqueueReadBuffer(cq, m, CL_TRUE, 0, sizeof(said), &said, 0, NULL, NULL);
	clReleaseMemObject(m);
	return !res && said == (uintptr_t)own;
}

static bool tried(cl_context ctx, cl_command_queue cq, cl_program p)
{
	cl_ulong *own = aligned_alloc(PAGE, PAGE), at = (uintptr_t)own;
	bool same = own && buffer_stays(ctx, cq, p, own);

	if (same) {
		*own = 0;
		same = run(cq, p, "there", sizeof(at), &at) == CL_SUCCESS &&
			*(volatile cl_ulong *)own == ~at;
	}
	free(own);
	return same;
}

static bool says_so(const struct opencl_device *dev)
{
	cl_bool unified = CL_FALSE;
	cl_uint bits = 0;

	clGetDeviceInfo(dev->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, NULL);
	clGetDeviceInfo(dev->id, CL_DEVICE_ADDRESS_BITS, sizeof(bits), &bits, NULL);
	return dev->zero_copy && unified && bits == 8 * sizeof(void *);
}

bool opencl_by_address(const struct opencl_device *dev)
{
	cl_context ctx;
	cl_command_queue cq = NULL;
	cl_program p = NULL;
	bool same = false;
	cl_int res;

	if (!says_so(dev))
		return false;
	ctx = clCreateContext(NULL, 1, &dev->id, NULL, NULL, &res);
	if (ctx)
		cq = clCreateCommandQueue(ctx, dev->id, 0, &res);
	if (cq)
		p = clCreateProgramWithSource(ctx, 1, (const char **)&text, NULL, &res);
	if (p && clBuildProgram(p, 1, &dev->id, "-cl-std=CL1.2", NULL, NULL) == CL_SUCCESS)
		same = tried(ctx, cq, p);
	if (p)
		clReleaseProgram(p);
	if (cq)
		clReleaseCommandQueue(cq);
	if (ctx)
		clReleaseContext(ctx);
	return same;
}
