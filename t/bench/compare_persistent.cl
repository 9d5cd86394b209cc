/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For comparison only: the literature's "persistent thread" design. The number of work-items is
 * fixed. A work-group takes one packet per work-item. Each work-item verifies its packet; then all
 * loop over the AES blocks of these packets; then each tags one. The group continues with the next
 * packets. */
#define CMP_GROUP 64 /* work-items; the host uses the same number */

__attribute__((reqd_work_group_size(CMP_GROUP, 1, 1)))
__kernel void cmp_persistent(const __global struct xc_job *jobs, uint n,
	const __global struct xc_key *keys, cmp_in in, cmp_out out, __global uint *status)
{
	__local uint first[CMP_GROUP + 1]; /* the first of each packet's blocks */
	uint me = (uint)get_local_id(0), groups = (uint)get_num_groups(0);

	for (uint base = (uint)get_group_id(0) * CMP_GROUP; base < n; base += groups * CMP_GROUP) {
		uint p = base + me, count = min(n - base, (uint)CMP_GROUP);

		if (me == 0) {
			uint sum = 0;

			for (uint i = 0; i < count; i++) {
				first[i] = sum;
				sum += cmp_blocks(jobs + base + i);
			}
			first[count] = sum;
		}
		if (me < count)
			status[p] = cmp_receive(
				jobs + p, keys, in + jobs[p].in_off, out + jobs[p].out_off);
		barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
		for (uint b = me, at = 0; b < first[count]; b += CMP_GROUP) {
			const __global struct xc_job *j;

			while (first[at + 1] <= b)
				at++;
			j = jobs + base + at;
			cmp_recrypt_block(
				j, keys, in + j->in_off, out + j->out_off, b - first[at]);
		}
		barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
		if (me < count)
			cmp_send(jobs + p, keys, out + jobs[p].out_off);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}
