/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For comparison only: the literature's "massively parallel" design. One work-item per packet to
 * verify, per AES block to cipher, and per packet to tag. Each step is a dispatch of its own. */

__kernel void cmp_massive_verify(const __global struct xc_job *jobs, uint n,
	const __global struct xc_key *keys, cmp_in in, cmp_out out, __global uint *status)
{
	const __global struct xc_job *j = jobs + get_global_id(0);

	if (get_global_id(0) < n)
		status[get_global_id(0)] = cmp_receive(j, keys, in + j->in_off, out + j->out_off);
}

/* (block, packet): the number of blocks of the longest packet. */
__kernel void cmp_massive_cipher(const __global struct xc_job *jobs, uint n,
	const __global struct xc_key *keys, cmp_in in, cmp_out out)
{
	const __global struct xc_job *j = jobs + get_global_id(1);

	if (get_global_id(1) < n && get_global_id(0) < cmp_blocks(j))
		cmp_recrypt_block(
			j, keys, in + j->in_off, out + j->out_off, (uint)get_global_id(0));
}

__kernel void cmp_massive_tag(const __global struct xc_job *jobs, uint n,
	const __global struct xc_key *keys, cmp_out out)
{
	const __global struct xc_job *j = jobs + get_global_id(0);

	if (get_global_id(0) < n)
		cmp_send(j, keys, out + j->out_off);
}
