"""What the system refuses is a CheckpointError with path and bytes, and leaves the rest intact."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from ckad.checkpoint.store import directory as directories
from ckad.checkpoint.store import files
from ckad.checkpoint.store.disk import DiskStore
from ckad.errors import CheckpointError

from .processes import ended, fork

N = 100_000


def state(k):
    return bytes([k]) * N


def taken(store, slot, step):
    into = bytearray(N)
    store.read(slot, step, memoryview(into))
    return into


def fill(store, n=10**6):
    """Write slot after slot until it is refused: how many there are, and the error."""
    for slot in range(n):
        try:
            store.write(slot, slot, memoryview(state(slot % 256)))
            store.flush()
        except CheckpointError as error:
            return slot, error
    raise AssertionError("nothing was refused")


def still_sound(store, n):
    """All that was written before a refusal is there, and there is room for it again."""
    assert n >= 2
    assert all(taken(store, slot, slot) == state(slot % 256) for slot in range(n))
    store.drop(0)
    store.write(1, 99, memoryview(state(3)))
    store.flush()
    assert taken(store, 1, 99) == state(3)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB, where one can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("n_buffers", [0, 3])
@pytest.mark.parametrize("durability", ["scratch", "resume"])
def test_a_disk_that_is_too_small(small_disk, durability, n_buffers):
    store = DiskStore(small_disk, 2**30, N, durability=durability, n_buffers=n_buffers)
    n, error = fill(store)
    assert n == 10
    assert error.needed > N > error.free
    assert error.slot == n
    assert error.path.startswith(str(small_disk))
    assert "the disk is full" in str(error)
    assert "KiB are free" in str(error)
    assert "directory= in ckad.Budget" in str(error)
    still_sound(store, n)
    if durability == "resume":
        with pytest.raises(CheckpointError, match="the disk is full"):
            store.journal({"step": 1}, [memoryview(bytes(N))])
        store.drop(2)
    store.close()
    assert [*small_disk.iterdir()] == []


@pytest.mark.parametrize("n_buffers", [0, 3])
@pytest.mark.parametrize("call", ["posix_fallocate", "writev"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_what_fails_in_the_background_is_said_by_the_next_call(
    tmp_path, monkeypatch, call, code, n_buffers
):
    """As disks without a quota cannot be made: room for three states, then the error."""
    store = DiskStore(tmp_path, 2**24, N, n_buffers=n_buffers)
    room = [3]

    def limited(real):
        def limited_call(opened, *arguments):
            if room[0] == 0:
                raise OSError(code, os.strerror(code))
            room[0] -= 1
            return real(opened, *arguments)

        return limited_call

    if call == "writev":
        room[0] = 6  # a head and a block for each state
        monkeypatch.setattr(os, "writev", limited(os.writev))
    else:
        monkeypatch.setattr(files, "_fallocate", limited(os.posix_fallocate))
    n, error = fill(store)
    assert n == 3
    assert error.slot == 3
    assert error.path == os.path.join(store.path, "3")
    said = {errno.ENOSPC: "disk is full", errno.EDQUOT: "quota", errno.EIO: os.strerror(errno.EIO)}
    assert said[code] in str(error)
    with pytest.raises(CheckpointError, match="slot 3 holds nothing"):
        taken(store, 3, 3)
    monkeypatch.undo()
    still_sound(store, n)
    store.close()
    assert [*tmp_path.iterdir()] == []


def test_a_device_that_is_always_full(tmp_path, monkeypatch):
    store = DiskStore(tmp_path, 2**24, N)
    real = files.open_existing
    store.write(0, 0, memoryview(state(0)))
    store.flush()
    monkeypatch.setattr(
        files,
        "open_existing",
        lambda *a, write=False: os.open("/dev/full", os.O_RDWR) if write else real(*a),
    )
    store.write(1, 1, memoryview(state(1)))
    with pytest.raises(CheckpointError, match="the disk is full") as error:
        store.flush()
    assert error.value.slot == 1
    assert taken(store, 0, 0) == state(0)
    store.close()
    with pytest.raises(CheckpointError, match="/dev/full is not a directory"):
        DiskStore("/dev/full", 2**24, N)


def test_a_limit_on_the_size_of_files(tmp_path):
    def program():
        resource.setrlimit(resource.RLIMIT_FSIZE, (N // 2, resource.RLIM_INFINITY))
        small = DiskStore(tmp_path, 2**24, 100)
        small.write(0, 0, memoryview(bytes(100)))
        small.flush()
        store = DiskStore(tmp_path, 2**24, N)
        n, error = fill(store)
        assert n == 0
        assert "above the limit on the size of a file of 48.8 KiB" in str(error)
        assert "ulimit -f" in str(error)
        assert error.needed > N
        into = bytearray(100)
        small.read(0, 0, memoryview(into))
        small.close()
        store.close()

    assert ended(fork(program)) == 0
    assert [*tmp_path.iterdir()] == []


def test_no_file_may_be_written_at_all(tmp_path):
    """The directory that was made for them goes again."""

    def refused():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with pytest.raises(CheckpointError, match="above the limit on the size of a file"):
            DiskStore(tmp_path, 2**20, N)

    assert ended(fork(refused)) == 0
    assert not [*tmp_path.iterdir()]


def test_a_directory_without_permission():
    """As another user, since permissions do not bind root."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)

        def program():
            os.setegid(65534)
            os.seteuid(65534)
            for durability in ("scratch", "resume"):
                with pytest.raises(
                    CheckpointError, match="cannot be written: Permission denied"
                ) as e:
                    DiskStore(folder, 2**24, N, durability=durability)
                assert e.value.path.startswith(str(folder))
                assert e.value.free > 0

        assert ended(fork(program)) == 0
        assert [*folder.iterdir()] == []
    finally:
        folder.rmdir()


def test_a_disk_that_is_read_only(small_disk):
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    store = DiskStore(small_disk, 2**24, N)
    store.write(0, 0, memoryview(state(0)))
    store.write(1, 1, memoryview(state(1)))
    store.flush()
    subprocess.run(remount, check=True)
    store.write(2, 2, memoryview(state(2)))  # its file was made ahead
    with pytest.raises(CheckpointError, match="cannot be written: Read-only file system") as error:
        store.flush()
    assert error.value.slot == 2
    store.write(1, 5, memoryview(state(5)))
    with pytest.raises(CheckpointError, match="cannot be written: Read-only file system"):
        store.flush()
    assert taken(store, 0, 0) == state(0)
    with pytest.raises(CheckpointError, match="cannot be written: Read-only file system"):
        DiskStore(small_disk, 2**24, N)
    store.close()


@pytest.mark.parametrize("durability", ["scratch", "resume"])
def test_a_directory_that_is_removed(tmp_path, durability):
    store = DiskStore(tmp_path, 2**24, N, durability=durability)
    store.write(0, 0, memoryview(state(0)))
    store.flush()
    shutil.rmtree(store.path)
    assert taken(store, 0, 0) == state(0)  # still in its buffer
    store.write(1, 1, memoryview(state(1)))  # its file was made ahead, and is gone too
    with pytest.raises(CheckpointError, match="directory has been removed") as error:
        store.flush()
    assert error.value.path == os.path.join(store.path, "1")
    for k in range(3):  # out of the buffers
        store._traffic.buffers.all[k].clear()
    with pytest.raises(CheckpointError, match="directory has been removed"):
        taken(store, 0, 0)
    if durability == "resume":
        store.journal({"step": 1})
        with pytest.raises(CheckpointError, match="directory has been removed"):
            store.flush()
    store.close()


@pytest.mark.parametrize("durability", ["scratch", "resume"])
def test_a_place_that_is_not_there(tmp_path, durability):
    with pytest.raises(CheckpointError, match="is not there") as error:
        DiskStore(tmp_path / "a" / "b", 2**24, N, durability=durability)
    assert error.value.path.startswith(str(tmp_path / "a" / "b"))


def test_a_run_in_use_names_its_process(tmp_path):
    store = DiskStore(tmp_path, 2**24, N, durability="resume")
    with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()} of"):
        DiskStore(tmp_path, 2**24, N, durability="resume")
    store.close()
    assert [*tmp_path.iterdir()] == []


def test_a_directory_that_others_could_read_is_refused(tmp_path):
    (tmp_path / "ckad-resume").mkdir(mode=0o755)
    with pytest.raises(CheckpointError, match="not a directory of yours alone"):
        DiskStore(tmp_path, 2**24, N, durability="resume")
    (tmp_path / "ckad-resume").rmdir()
    (tmp_path / "other").mkdir(mode=0o700)
    (tmp_path / "ckad-resume").symlink_to(tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"symbolic link|not a directory"):
        DiskStore(tmp_path, 2**24, N, durability="resume")
    assert [*(tmp_path / "other").iterdir()] == []


def test_files_are_private(tmp_path):
    store = DiskStore(tmp_path, 2**24, N, durability="resume")
    store.write(0, 0, memoryview(state(0)))
    store.journal({"step": 0})
    store.flush()
    found = [Path(store.path), *Path(store.path).iterdir()]
    assert len(found) == 6  # the directory, marker, record, a state, the next two files
    assert {path.stat().st_mode & 0o077 for path in found} == {0}
    store.close()


def leave_behind(tmp_path, n=1):
    """Scratch directories of processes that were killed."""

    def program():
        store = DiskStore(tmp_path, 2**24, N)
        store.write(0, 0, memoryview(state(0)))
        store.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    for _ in range(n):
        assert ended(fork(program)) == -signal.SIGKILL
    return {*tmp_path.iterdir()}


def test_what_dead_processes_left_is_swept_and_nothing_else(tmp_path):
    living = DiskStore(tmp_path, 2**24, N)
    living.write(0, 0, memoryview(state(9)))
    left = leave_behind(tmp_path) - {Path(living.path)}
    assert len(left) == 1
    theirs = tmp_path / "ckad-scratch-abcdefgh"  # the name alone: no marker
    theirs.mkdir(mode=0o700)
    (theirs / "1").write_text("mine")
    shared = tmp_path / "ckad-scratch-shared00"  # a marker, and not private
    shared.mkdir(mode=0o755)
    (shared / directories.MARKER).touch()
    mixed = tmp_path / "ckad-scratch-mixed000"  # ours, with a file of the user's in it
    mixed.mkdir(mode=0o700)
    for name in (directories.MARKER, "12", "journal-0", "results.npz", "12.txt", "journal-2"):
        (mixed / name).touch()
    linked = tmp_path / "ckad-scratch-linked00"
    linked.symlink_to(mixed)
    begun = tmp_path / "ckad-scratch-begun000"  # killed before it had its marker
    begun.mkdir(mode=0o700)
    (tmp_path / "results.npz").touch()
    DiskStore(tmp_path, 2**24, N).close()
    assert {path.name for path in tmp_path.iterdir()} == {
        Path(living.path).name,
        theirs.name,
        shared.name,
        mixed.name,
        linked.name,
        "results.npz",
    }
    assert {path.name for path in mixed.iterdir()} == {"results.npz", "12.txt", "journal-2"}
    assert (theirs / "1").read_text() == "mine"
    assert taken(living, 0, 0) == state(9)
    living.close()


def test_eight_processes_in_one_directory(tmp_path):
    """Each in its own part of it, beside sweeps by the others, half of them killed."""
    leave_behind(tmp_path, 2)

    def program(k):
        for _ in range(3):
            store = DiskStore(tmp_path, 2**24, N)
            for slot in range(8):
                store.write(slot, k, memoryview(state(10 * k + slot)))
            for slot in range(8):
                assert taken(store, slot, k) == state(10 * k + slot)
            if k % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            store.close()

    children = [fork(lambda k=k: program(k)) for k in range(8)]
    assert [ended(child) for child in children] == [0, -signal.SIGKILL] * 4
    DiskStore(tmp_path, 2**24, N).close()
    assert [*tmp_path.iterdir()] == []


def test_eight_processes_that_resume_one_run(tmp_path):
    """One has it; the others are told so."""

    def program():
        try:
            store = DiskStore(tmp_path, 2**24, N, durability="resume")
        except CheckpointError as error:
            assert "in use by" in str(error)  # noqa: PT017
            (tmp_path / f"refused-{os.getpid()}").touch()
            return
        while len([*tmp_path.glob("refused-*")]) < 7:
            time.sleep(0.01)
        store.close()

    assert [ended(child) for child in [fork(program) for _ in range(8)]] == [0] * 8
    assert len([*tmp_path.iterdir()]) == 7
