# SPDX-License-Identifier: GPL-2.0-or-later
"""An ICE peer by aioice with the lines of t/tool/ice_peer.c: ice_aioice.py FOLDER offer|answer
COMPONENTS [lite]

FOLDER has the Python packages. lite: the peer is lite. Prints its attributes and "end", reads
the peer's, connects, sends "ping" by each component until it comes back, and prints "connected"
and "echo COMPONENT". Consent checks continue until standard input ends."""
import asyncio
import contextlib
import sys

sys.path.append(sys.argv[1])

import aioice  # noqa: E402


async def read_peer(connection):
    loop = asyncio.get_running_loop()
    while True:
        line = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
        if line == "end":
            break
        name, _, value = line.removeprefix("a=").partition(":")
        if name == "ice-ufrag":
            connection.remote_username = value
        elif name == "ice-pwd":
            connection.remote_password = value
        elif name == "candidate":
            await connection.add_remote_candidate(aioice.Candidate.from_sdp(value))
    await connection.add_remote_candidate(None)


async def echoed(connection, component):
    """Sends until the echo comes. The peer drops packets until its own check of the pair has succeeded."""
    source = None
    while source != component:
        await connection.sendto(b"ping", component)
        with contextlib.suppress(asyncio.TimeoutError):
            data, source = await asyncio.wait_for(connection.recvfrom(), 0.2)
            assert data == b"ping", data


async def main():
    components = int(sys.argv[3])
    connection = aioice.Connection(ice_controlling=sys.argv[2] == "offer", components=components, use_ipv6=True)
    connection.remote_is_lite = "lite" in sys.argv[4:]
    await connection.gather_candidates()
    lines = [f"a=ice-ufrag:{connection.local_username}", f"a=ice-pwd:{connection.local_password}"]
    lines += [f"a=candidate:{c.to_sdp()}" for c in connection.local_candidates]
    print("\n".join([*lines, "a=end-of-candidates", "end"]), flush=True)
    await read_peer(connection)
    await connection.connect()
    print("connected", flush=True)
    for component in range(1, components + 1):
        await echoed(connection, component)
        print("echo", component, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await connection.close()


asyncio.run(main())
