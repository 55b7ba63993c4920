"""The filter of system calls that bubblewrap's sandboxes run under, as a program for the kernel's virtual machine (seccomp-bpf).

It refuses what goes around a sandbox's limits (memory that belongs to no process: ``memfd_create``, System V's shared memory and queues),
namespaces and mounts (a ``tmpfs`` of any size), other processes' memory, and parts of the kernel that a command has no business with.
"""

from __future__ import annotations

import errno
import struct

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
_CLONE = (56, 220)
_CLONE3 = 435
_CLONE_NAMESPACES = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET, and NEWTIME's bit
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


def is_known(machine: str) -> bool:
    """Say whether there is a filter for a machine, as `platform.machine` names it."""
    return machine in _MACHINES


def write_filter(machine: str) -> bytes:
    """Return the program: an array of ``struct sock_filter``."""
    column, architecture = _MACHINES[machine]
    refuse, unknown = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    # Each instruction: code, steps if true, steps if false, value.
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, unknown),  # 32-bit calls have other numbers
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, unknown)]  # x32 has, too
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    # Its flags lie in memory, where a filter can't read them: the C library goes on with clone.
    program += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, unknown)]
    program += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _CLONE_NAMESPACES),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
