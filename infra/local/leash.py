"""Run a program that dies with its parent: `python leash.py PARENT SIGNAL USER PROGRAM [ARGUMENT…]`.

Linux sends SIGNAL to the program when PARENT ends, even by SIGKILL. The request is lost on a change of user
and kept over `exec`, so it is made here, between the two. Doing this in a program of its own, and not in
`preexec_fn`, keeps the parent free to have threads. Elsewhere than on Linux the program just runs. USER is a
user id, or -1 to keep the own.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def follow(parent: int, death_signal: int) -> None:
    """Have `death_signal` sent to this process when the thread of `parent` that started it ends."""
    if sys.platform != "linux":
        return
    if LIBC.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it ended before the request was made
        os.kill(os.getpid(), signal.SIGKILL)


def main(parent: int, death_signal: int, user: int, *command: str) -> None:
    if user >= 0:
        os.setgroups([])
        os.setgid(pwd.getpwuid(user).pw_gid)
        os.setuid(user)
    follow(parent, death_signal)
    os.execv(command[0], command)  # noqa: S606


# Found while this is still the user who started it: another may not be able to read the library.
LIBC = ctypes.CDLL(None, use_errno=True)

if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])  # type: ignore[arg-type]
