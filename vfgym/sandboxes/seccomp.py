"""The filter of system calls that bubblewrap's sandboxes run under, as a program for the kernel's virtual machine (seccomp-bpf).

It refuses what goes around a sandbox's limits (memory that belongs to no process: ``memfd_create``, System V's shared memory and queues),
namespaces and mounts (a ``tmpfs`` of any size), other processes' memory, and parts of the kernel that a command has no business with.
Of the families of sockets only those pass that are named: others lead to parts of the kernel, or to a hypervisor, that nobody thought of.
"""

from __future__ import annotations

import errno
import struct
from typing import TypeAlias

# What is refused with EPERM: the numbers on x86_64 and on aarch64, None where there is no such call
# (Linux: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
_REFUSED: dict[str, tuple[int, int | None]] = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "vmsplice": (278, 75),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
}
# What is not there, so that programs do without: it is counted for a user, whoever else is that user, and shows what others do with files.
_UNKNOWN: dict[str, tuple[int, int | None]] = {"inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262)}
_SETPRIORITY = (141, 140)
_OWN: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": _SETPRIORITY,
}
"""What a process may do to itself, whose first argument is 0 then. It could do it to the agent, which has the same user."""
_SOCKETS = ((41, 198), (53, 199))
"""``socket`` and ``socketpair``."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6. The C library resolves names and lists no interfaces where AF_NETLINK is refused."""
_MMAP, _SETSOCKOPT = (9, 222), (54, 208)
_SHARED_AND_ANONYMOUS = 0x21
"""MAP_SHARED, also as a bit of MAP_SHARED_VALIDATE, and MAP_ANONYMOUS."""
MOST_SHARED = 16 << 20
"""Bytes of a piece of shared memory without a file, where the kernel does not bound all memory."""
_CLONE = (56, 220)
_CLONE3 = 435
_CLONE_NAMESPACES = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET, and NEWTIME's bit
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


def is_known(machine: str) -> bool:
    """Say whether there is a filter for a machine, as `platform.machine` names it."""
    return machine in _MACHINES


def write_filter(machine: str, *, kernel_bounds_memory: bool) -> bytes:
    """Return the program of a machine: an array of ``struct sock_filter``.

    Args:
        machine: As `platform.machine` names it.
        kernel_bounds_memory: Whether the kernel bounds the memory of all processes. Where it does not, pieces of shared memory without a
            file have a size that can be counted. Buffers of sockets always have: not all groups count them.
    """
    column, _ = _MACHINES[machine]
    refuse, unknown = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    program = _begin(machine, unknown)
    for calls, answer in ((_REFUSED, refuse), (_UNKNOWN, unknown)):
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    for numbers in _OWN.values():
        program += _refuse_for_others(numbers[column], refuse)
    program += _refuse_for_others(_SETPRIORITY[column], refuse, argument=1)
    program += _keep_socket_buffers(column)
    if not kernel_bounds_memory:
        program += _bound_shared_memory(column)
    # Its flags lie in memory, where a filter can't read them: the C library goes on with clone.
    program += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, unknown)]
    program += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _CLONE_NAMESPACES),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, _NUMBER),
    ]
    return _pack([*program, *_refuse_families(column)])


def write_socket_filters() -> dict[str, bytes]:
    """Return the program for each machine that refuses nothing but families of sockets: for containers, whose engine has its own filter."""
    unknown = _ERRNO | errno.ENOSYS
    return {machine: _pack([*_begin(machine, unknown), *_refuse_families(column)]) for machine, (column, _) in _MACHINES.items()}


_Instruction: TypeAlias = tuple[int, int, int, int]
"""Code, steps if true, steps if false, value."""


def _begin(machine: str, of_other_numbers: int) -> list[_Instruction]:
    """Return what loads the number of a call, and what calls with other numbers (32 bits, x32) end in."""
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _MACHINES[machine][1]),
        (_RETURN, 0, 0, of_other_numbers),
        (_LOAD, 0, 0, _NUMBER),
    ]
    return [*program, (_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, of_other_numbers)] if machine == "x86_64" else program


def _refuse_families(column: int) -> list[_Instruction]:
    """Return what ends a filter: sockets of the families that are named pass, and all that is not a socket."""
    (one, two), count = (numbers[column] for numbers in _SOCKETS), len(_FAMILIES)
    return [
        (_EQUAL, 1, 0, one),
        (_EQUAL, 0, count + 2, two),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_EQUAL, count - number, 0, family) for number, family in enumerate(_FAMILIES)),
        (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse_for_others(number: int, refuse: int, argument: int = 0) -> list[_Instruction]:
    """Return what refuses a call whose argument, the number of a process, is not 0."""
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT + argument * 8),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, _NUMBER),
    ]


def _bound_shared_memory(column: int) -> list[_Instruction]:
    """Return what refuses to map more than `MOST_SHARED` bytes that are shared and have no file."""
    return [
        (_EQUAL, 0, 8, _MMAP[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 3 * 8),
        (_AND, 0, 0, _SHARED_AND_ANONYMOUS),
        (_EQUAL, 0, 5, _SHARED_AND_ANONYMOUS),
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 + 4),
        (_EQUAL, 0, 2, 0),  # the upper half of the length
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 8),
        (_AT_LEAST, 0, 1, MOST_SHARED + 1),
        (_RETURN, 0, 0, _ERRNO | errno.ENOMEM),
        (_LOAD, 0, 0, _NUMBER),
    ]


def _keep_socket_buffers(column: int) -> list[_Instruction]:
    """Return what answers a wish for other buffers with success, and does nothing: so does the kernel for larger ones than it has."""
    return [
        (_EQUAL, 0, 6, _SETSOCKOPT[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 8),
        (_EQUAL, 0, 4, 1),  # SOL_SOCKET
        (_LOAD, 0, 0, _FIRST_ARGUMENT + 2 * 8),
        (_EQUAL, 1, 0, 7),  # SO_SNDBUF
        (_EQUAL, 0, 1, 8),  # SO_RCVBUF
        (_RETURN, 0, 0, _ERRNO),
        (_LOAD, 0, 0, _NUMBER),
    ]


def _pack(program: list[_Instruction]) -> bytes:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
