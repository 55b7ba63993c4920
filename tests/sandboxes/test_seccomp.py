"""The filters of system calls, run as the kernel's virtual machine runs them: which calls pass, and how the others fail."""

from __future__ import annotations

import errno
import struct

import pytest

from vfgym.sandboxes.seccomp import MOST_SHARED, is_known, write_filter, write_socket_filters

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = "allowed"
CALLS = {  # name: numbers on x86_64 and aarch64 (Linux: syscall_64.tbl, asm-generic/unistd.h)
    "read": (0, 63),
    "execve": (59, 221),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "unshare": (272, 97),
    "mount": (165, 40),
    "ptrace": (101, 117),
    "io_uring_setup": (425, 425),
    "reboot": (169, 142),
    "bpf": (321, 280),
    "vmsplice": (278, 75),
    "msgget": (68, 186),
    "add_key": (248, 217),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "inotify_init1": (294, 26),
    "clone": (56, 220),
    "clone3": (435, 435),
    "mmap": (9, 222),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "prlimit64": (302, 261),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
}


def run(program: bytes, machine: str, number: int, *arguments: int, architecture: int | None = None) -> str | int:
    """Return what a filter answers to a call: that it is allowed, or the number of its error (0 for success without doing anything)."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, ARCHITECTURES[machine] if architecture is None else architecture, 0, *padded)
    instructions = list(struct.iter_unpack("=HBBI", program))
    accumulator = place = 0
    while True:
        code, if_true, if_false, value = instructions[place]
        place += 1
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return ALLOWED if value == 0x7FFF0000 else _error(value)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            place += if_true if holds else if_false


def _error(value: int) -> int:
    assert value & 0xFFFF0000 == 0x00050000, hex(value)
    return value & 0xFFFF


@pytest.fixture(params=[("x86_64", True), ("x86_64", False), ("aarch64", True), ("aarch64", False)], ids=str)
def kernel(request: pytest.FixtureRequest) -> tuple[str, bool]:
    machine, bounds_memory = request.param
    return machine, bounds_memory


def answer(kernel: tuple[str, bool], call: str, *arguments: int) -> str | int:
    machine, bounds_memory = kernel
    number = CALLS[call][0 if machine == "x86_64" else 1]
    return run(write_filter(machine, kernel_bounds_memory=bounds_memory), machine, number, *arguments)


NAMESPACES = {"NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000, "NEWUSER": 0x10000000}
NAMESPACES |= {"NEWPID": 0x20000000, "NEWNET": 0x40000000, "NEWTIME": 0x80}


@pytest.mark.parametrize(
    ("call", "arguments", "answered"),
    [
        ("read", (), ALLOWED),
        ("execve", (), ALLOWED),
        *((call, (), errno.EPERM) for call in ("memfd_create", "shmget", "unshare", "mount", "ptrace", "io_uring_setup", "reboot", "bpf")),
        *((call, (), errno.EPERM) for call in ("vmsplice", "msgget", "add_key", "perf_event_open", "userfaultfd")),
        ("inotify_init1", (), errno.ENOSYS),
        ("clone3", (), errno.ENOSYS),
        ("clone", (0x11,), ALLOWED),
        ("clone", (0x3D0F00,), ALLOWED),  # a thread
        *(("clone", (flag | 0x11,), errno.EPERM) for flag in NAMESPACES.values()),
        *((call, (family,), ALLOWED) for call in ("socket", "socketpair") for family in (1, 2, 10)),
        *((call, (family,), errno.EAFNOSUPPORT) for call in ("socket", "socketpair") for family in (0, 3, 16, 17, 40)),
        *((call, (0,), ALLOWED) for call in ("prlimit64", "sched_setattr")),
        *((call, (1,), errno.EPERM) for call in ("prlimit64", "sched_setattr")),
        ("setpriority", (0, 0), ALLOWED),
        ("setpriority", (0, 1), errno.EPERM),
        ("setpriority", (1, 0), errno.EPERM),
        ("setsockopt", (3, 1, 7), 0),
        ("setsockopt", (3, 1, 8), 0),
        ("setsockopt", (3, 1, 9), ALLOWED),
        ("setsockopt", (3, 6, 7), ALLOWED),
    ],
)
def test_calls_pass_or_fail_by_what_they_do(kernel: tuple[str, bool], call: str, arguments: tuple[int, ...], answered: str | int) -> None:
    assert answer(kernel, call, *arguments) == answered


FAIL_ALWAYS: dict[str, tuple[int, int | None]] = {
    **{"memfd_secret": (447, 447), "shmat": (30, 196), "semget": (64, 190), "mq_open": (240, 180), "setns": (308, 268)},
    **{"umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429)},
    **{"fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442)},
    **{"process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "kcmp": (312, 272)},
    **{"io_uring_enter": (426, 426), "io_uring_register": (427, 427), "request_key": (249, 218), "keyctl": (250, 219)},
    **{"init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104)},
    **{"kexec_file_load": (320, 294), "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "quotactl": (179, 60)},
    **{"acct": (163, 89), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "iopl": (172, None)},
    **{"ioperm": (173, None), "modify_ldt": (154, None), "vhangup": (153, 58), "nfsservctl": (180, 42), "lookup_dcookie": (212, 18)},
}
NOT_THERE: dict[str, tuple[int, int | None]] = {"inotify_init": (253, None), "fanotify_init": (300, 262)}
OF_ITSELF = {"sched_setscheduler": (144, 119), "sched_setparam": (142, 118)}


def test_every_call_that_is_refused_fails_on_either_machine(kernel: tuple[str, bool]) -> None:
    machine, bounds_memory = kernel
    column = 0 if machine == "x86_64" else 1
    program = write_filter(machine, kernel_bounds_memory=bounds_memory)

    def answers(calls: dict[str, tuple[int, int | None]], *arguments: int) -> set[str | int]:
        return {run(program, machine, number, *arguments) for numbers in calls.values() if (number := numbers[column]) is not None}

    assert answers(FAIL_ALWAYS) == {errno.EPERM}
    assert answers(NOT_THERE, 1) == ({errno.ENOSYS})
    assert answers({**OF_ITSELF}, 0) == {ALLOWED}
    assert answers({**OF_ITSELF}, 7) == {errno.EPERM}


@pytest.mark.parametrize(
    ("length", "flags", "is_bounded"),
    [
        (MOST_SHARED, 0x21, False),
        (MOST_SHARED + 1, 0x21, True),
        (1 << 32, 0x21, True),  # in the upper half alone
        (MOST_SHARED + 1, 0x23, True),  # MAP_SHARED_VALIDATE
        (1 << 40, 0x22, False),  # private
        (1 << 40, 0x01, False),  # of a file
    ],
)
def test_shared_memory_without_a_file_is_bounded_where_the_kernel_does_not(
    kernel: tuple[str, bool], length: int, flags: int, is_bounded: bool
) -> None:
    refused = is_bounded and not kernel[1]
    assert answer(kernel, "mmap", 0, length, 3, flags) == (errno.ENOMEM if refused else ALLOWED)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_calls_of_another_architecture_are_not_there(machine: str) -> None:
    program = write_filter(machine, kernel_bounds_memory=True)
    assert run(program, machine, 0, architecture=0x40000003) == errno.ENOSYS
    x32 = run(program, machine, 0x40000000 + 59)
    assert x32 == (errno.ENOSYS if machine == "x86_64" else ALLOWED), "numbers of x32 are those of x86_64 alone"


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_containers_have_filters_of_families_alone(machine: str) -> None:
    column = 0 if machine == "x86_64" else 1
    program = write_socket_filters()[machine]
    assert run(program, machine, CALLS["socket"][column], 1) == ALLOWED
    assert run(program, machine, CALLS["socketpair"][column], 16) == errno.EAFNOSUPPORT
    assert run(program, machine, CALLS["mount"][column]) == ALLOWED
    assert run(program, machine, 0, architecture=0x40000003) == errno.ENOSYS


def test_other_machines_are_not_known() -> None:
    assert [is_known(machine) for machine in ("x86_64", "aarch64", "riscv64", "")] == [True, True, False, False]
    assert write_socket_filters().keys() == ARCHITECTURES.keys()
