"""The kernel cache: warm starts are hits, and no fault of the cache costs more than time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress

import numba
import numpy as np
import pytest
from numba.extending import intrinsic

from ckad import cache, locks
from ckad import kernel as kernels
from ckad.cache import CacheWarning, cache_dir, cache_fault, cache_status, source_digest
from ckad.kernel import KERNELS, kernel

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing to cache without JIT")

posix = pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")

PROBE = """
import numba
from ckad.kernel import kernel

@kernel
def square(x):
    return x * x

@kernel
def sum_of_squares(x, y):
    return square(x) + square(y)

for arguments in [(3.0, 4.0), (3, 4)]:
    assert sum_of_squares(*arguments) == 25, "wrong number"
if not numba.config.DISABLE_JIT:
    print(sum(sum_of_squares.stats.cache_hits.values()))
"""


def increment(x):
    return x + 1


def fresh(function=increment):
    """A kernel as a new process would have it: nothing compiled yet."""
    return kernel(function)


def hits(compiled):
    return sum(compiled.stats.cache_hits.values())


def entries():
    return sorted(cache_dir().glob("kernels-*/*"))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CKAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CKAD_QUIET", "1")
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(KERNELS, "edited", lambda: False)
    cache._directory.cache_clear()


@pytest.fixture
def probe(tmp_path):
    """Start the probe program in a process of its own, with a package that holds kernels alone."""
    (tmp_path / "ckad").mkdir()
    (tmp_path / "ckad" / "__init__.py").touch()
    for module in (kernels, cache, locks):
        shutil.copy(module.__file__, tmp_path / "ckad")
    script = tmp_path / "probe.py"
    script.write_text(PROBE)

    def start(**variables):
        return subprocess.Popen(
            [sys.executable, script],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    start.script = script
    return start


def test_the_second_process_compiles_nothing(probe):
    out, announced = probe(CKAD_QUIET="").communicate()
    assert (out, announced.count("compiling its kernels")) == ("0\n", 1)
    assert probe(CKAD_QUIET="").communicate() == ("2\n", "")


def test_an_edited_module_of_the_package_is_a_new_start(probe, tmp_path):
    assert probe().communicate() == ("0\n", "")
    (tmp_path / "ckad" / "rules").mkdir()
    (tmp_path / "ckad" / "rules" / "table.py").write_text("edited = True")
    assert probe().communicate() == ("0\n", "")


def test_processes_that_race_on_an_empty_cache_agree(probe):
    racers = [probe() for _ in range(4)]
    assert all(racer.communicate()[1] == "" for racer in racers)
    assert [racer.returncode for racer in racers] == [0] * 4
    assert probe().communicate() == ("2\n", "")


def test_without_jit_a_kernel_is_the_function_itself(probe):
    plain = probe(NUMBA_DISABLE_JIT="1")
    assert plain.communicate() == ("", "")
    assert (plain.returncode, entries()) == (0, [])


def test_each_signature_has_its_own_entry():
    cold = fresh()
    assert (cold(1), cold(1.5), hits(cold)) == (2, 2.5, 0)
    warm = fresh()
    assert (warm(1), warm(1.5), hits(warm)) == (2, 2.5, 2)
    assert cache_status() == (2, sum(path.stat().st_size for path in entries()))


def test_readonly_arrays_are_not_mistaken_for_writable_ones():
    def total(values):
        return values.sum()

    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert fresh(total)(np.ones(3)) == fresh(total)(frozen) == 3
    assert len(entries()) == 2


def adder(amount):
    def add(x):
        return x + amount

    return add


def applier(inner):
    def apply(x):
        return inner(x)

    return apply


def scaled_by(factor):
    @intrinsic
    def scaled(typing_context, x):
        def emit(context, builder, signature, arguments):
            return builder.fmul(arguments[0], context.get_constant(x, factor))

        return x(x), emit

    return scaled


@pytest.mark.parametrize("wrap", [lambda n: adder(n), lambda n: applier(kernel(adder(n)))])
def test_closures_tell_kernels_apart(wrap):
    assert [fresh(wrap(amount))(1) for amount in (1, 2)] == [2, 3]
    warm = fresh(wrap(2))
    assert (warm(1), hits(warm)) == (3, 1)


def test_intrinsics_tell_kernels_apart():
    assert [fresh(applier(scaled_by(factor)))(1.0) for factor in (2.0, 3.0)] == [2.0, 3.0]
    warm = fresh(applier(scaled_by(3.0)))
    assert (warm(1.0), hits(warm)) == (3.0, 1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"not a cache entry",
    ],
    ids=["empty", "truncated", "one bit", "foreign"],
)
def test_a_damaged_entry_is_compiled_again_and_replaced(damage):
    fresh()(1)
    (entry,) = entries()
    entry.write_bytes(damage(entry.read_bytes()))
    with pytest.warns(CacheWarning, match="was not read"):
        assert fresh()(1) == 2
    repaired = fresh()
    assert (repaired(1), hits(repaired)) == (2, 1)


def test_a_damaged_cache_is_told_once():
    def decrement(x):
        return x - 1

    fresh()(1), fresh(decrement)(1)
    for entry in entries():
        entry.write_bytes(b"")
    with pytest.warns(CacheWarning) as told:
        assert (fresh()(1), fresh(decrement)(1)) == (2, 0)
    assert len(told) == 1


def test_an_entry_filed_under_the_wrong_name_is_not_used():
    fresh()(1), fresh()(1.5)
    first, second = entries()
    first.write_bytes(second.read_bytes())
    assert (fresh()(1), fresh()(1.5)) == (2, 2.5)


def test_a_cache_that_cannot_be_written_is_told_once(monkeypatch):
    def refuse(path, payload):
        raise PermissionError(13, "Read-only file system", str(path))

    monkeypatch.setattr(cache, "write", refuse)
    with pytest.warns(CacheWarning, match="was not written") as told:
        assert (fresh()(1), fresh()(1.5)) == (2, 2.5)
    assert len(told) == 1


def test_a_cache_that_cannot_be_made_is_told_once(tmp_path):
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.warns(CacheWarning, match="is not used") as told:
        assert (fresh()(1), fresh()(1.5)) == (2, 2.5)
    assert len(told) == 1
    assert "File exists" in cache_fault()


@posix
def test_the_cache_is_private():
    fresh()(1)
    directories = (cache_dir(), entries()[0].parent)
    assert {path.stat().st_mode & 0o777 for path in directories} == {0o700}
    assert cache_fault() is None


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_directory_that_others_can_write_is_refused(mode):
    cache_dir().mkdir()
    cache_dir().chmod(mode)
    with pytest.warns(CacheWarning, match="chmod 700"):
        assert fresh()(1) == 2
    assert list(cache_dir().iterdir()) == []


@posix
def test_a_directory_of_another_user_is_refused(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: cache_dir().parent.stat().st_uid + 1)
    with pytest.warns(CacheWarning, match="belongs to user"):
        assert fresh()(1) == 2
    assert entries() == []


def test_edited_sources_use_another_directory(monkeypatch):
    fresh()(1)
    monkeypatch.setattr(KERNELS, "sources", "edited")
    edited = fresh()
    assert (edited(1), hits(edited)) == (2, 0)
    assert len({entry.parent for entry in entries()}) == 2


def test_nothing_is_stored_once_the_sources_were_edited_under_a_running_process(monkeypatch):
    monkeypatch.setattr(KERNELS, "edited", lambda: True)
    assert (fresh()(1), entries()) == (2, [])


def test_an_edit_is_seen_in_a_file_an_old_time_or_a_new_file_and_not_in_the_same_text(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    source = tmp_path / "deep" / "er" / "x.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1")
    before = source.stat()
    sources = cache.Cache("some", ("deep/**/*.py",))
    assert not sources.edited()
    source.write_text("x = 2")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same size too
    assert sources.edited()
    source.write_text("x = 1")
    assert not sources.edited()
    (tmp_path / "deep" / "new.py").write_text("")
    assert sources.edited()
    (tmp_path / "deep" / "new.py").unlink()
    assert not sources.edited()
    source.unlink()
    assert sources.edited()


def test_the_digest_sees_every_source_that_reaches_machine_code(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    (tmp_path / "rules" / "deep").mkdir(parents=True)
    seen = set()
    for text in ("a = 1", "a = 2"):
        (tmp_path / "rules" / "deep" / "table.py").write_text(text)
        seen.add(source_digest(KERNELS.patterns))
    (tmp_path / "rules" / "deep" / "table.py").rename(tmp_path / "rules" / "table.py")
    seen.add(source_digest(KERNELS.patterns))
    assert len(seen) == 3


def test_the_directories_used_last_are_kept():
    for age in range(cache.KEPT + 5):
        (cache_dir() / f"kernels-{age}").mkdir(parents=True)
        os.utime(cache_dir() / f"kernels-{age}", (1e9 - age, 1e9 - age))
    (cache_dir() / "notes").mkdir()
    cache_dir().chmod(0o700)
    fresh()(1)
    left = {path.name for path in cache_dir().iterdir()} - {
        "notes",
        cache.LOCKS,
        entries()[0].parent.name,
    }
    assert left == {f"kernels-{age}" for age in range(cache.KEPT - 1)}
    assert (cache_dir() / "notes").exists()


def test_the_default_is_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CKAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert cache_dir() == tmp_path / "ckad"
    assert cache_dir().name in {"ckad", "Cache"}


def test_of_processes_that_start_at_once_one_compiles(probe):
    racers = [probe() for _ in range(4)]
    hits_of_all = sorted(int(racer.communicate()[0]) for racer in racers)
    # two kernels of two signatures each: whoever comes first compiles, and nobody compiles again
    assert sum(2 - found for found in hits_of_all) == 2


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@contextmanager
def beside(task):
    """A forked child that runs ``task`` with a function that waits until this process is done."""
    started, starts = os.pipe()
    waits, ends = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)  # it ends, whatever becomes of its parent
            os.close(ends)
            task(lambda: (os.write(starts, b"."), os.read(waits, 1)))
        finally:
            os._exit(0)
    os.close(starts)
    os.close(waits)
    try:
        assert os.read(started, 1) == b"."
        yield child
    finally:
        os.close(ends)
        os.close(started)
        os.waitpid(child, 0)


def locked_by_another(entry):
    def hold(wait):
        with cache.exclusive_entry(entry):
            wait()

    return beside(hold)


def is_free(entry):
    """Whether another process gets the lock of an entry at once."""
    child = os.fork()
    if child == 0:
        found, pauses = 2, []
        try:
            signal.alarm(60)
            cache.time.sleep, cache.LONGEST_WAIT = pauses.append, 0.01
            with cache.exclusive_entry(entry):
                found = len(pauses) == 0
        finally:
            os._exit(found)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 1


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_hangs_while_it_compiles_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(cache, "LONGEST_WAIT", 0.2)
    fresh()(1)
    entry = fresh()._cache._entry((numba.float64,), entries()[0].parent)[1]
    with locked_by_another(entry):
        assert fresh()(1.5) == 2.5
    assert entry in entries()


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_other_kernels_are_compiled_while_a_process_holds_the_lock_of_one(monkeypatch):
    pauses = []
    monkeypatch.setattr(cache.time, "sleep", pauses.append)
    monkeypatch.setattr(cache, "LONGEST_WAIT", 0.2)
    fresh()(1)
    entry = fresh()._cache._entry((numba.float64,), entries()[0].parent)[1]
    with locked_by_another(entry):
        assert fresh(lambda x: x - 1)(1) == 0
        assert not pauses
        assert fresh()(1.5) == 2.5
    assert pauses


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_entry_stays_locked_while_those_that_it_needs_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "LONGEST_WAIT", 0.05)
    outer, inner = tmp_path / "kernels-1" / "outer", tmp_path / "kernels-1" / "inner"
    outer.parent.mkdir()
    assert is_free(outer)
    with cache.exclusive_entry(outer):
        with cache.exclusive_entry(inner):
            assert not is_free(inner)
        with cache.exclusive_entry(outer):
            pass
        assert not is_free(outer)
        assert is_free(inner)
    assert is_free(outer)


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_is_forked_meanwhile_does_not_keep_the_lock(tmp_path):
    entry = tmp_path / "kernels-1" / "one"
    entry.parent.mkdir()
    with ExitStack() as lasting:
        with cache.exclusive_entry(entry):
            child = lasting.enter_context(beside(lambda wait: wait()))
            assert not is_free(entry)
        assert is_free(entry)
        assert os.waitpid(child, os.WNOHANG) == (0, 0)


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_can_write_is_compiled_again(mode):
    fresh()(1)
    (entry,) = entries()
    entry.chmod(mode)
    with pytest.warns(CacheWarning, match="can be written by others"):
        assert fresh()(1) == 2
    assert entry.stat().st_mode & 0o777 == 0o600


@posix
def test_an_entry_that_belongs_to_another_user_is_compiled_again(monkeypatch):
    fresh()(1)
    (entry,) = entries()
    opened = os.fstat

    def of_another(descriptor):
        found = list(opened(descriptor))
        found[4] += 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", of_another)
    with pytest.raises(PermissionError, match="belongs to user"):
        cache.read(entry)


@posix
def test_an_entry_is_no_link(tmp_path):
    fresh()(1)
    (entry,) = entries()
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning, match="was not read"):
        assert fresh()(1) == 2


@posix
def test_a_parent_that_others_can_write_is_refused(tmp_path, monkeypatch):
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    monkeypatch.setenv("CKAD_CACHE_DIR", str(parent / "cache"))
    with pytest.warns(CacheWarning, match="its parent .* can be written by others"):
        assert fresh()(1) == 2
    parent.chmod(0o1777)  # sticky, as /tmp is
    cache._directory.cache_clear()
    fresh()(1)
    assert len(entries()) == 1


def test_without_a_home_the_cache_is_temporary_and_that_is_told_once(probe):
    homeless = (
        "import os, pwd, sys, runpy\n"
        "[os.environ.pop(name, 0) for name in ('HOME', 'XDG_CACHE_HOME', 'CKAD_CACHE_DIR')]\n"
        "def nobody(uid):\n"
        "    raise KeyError(uid)\n"
        "pwd.getpwuid = nobody\n"
        "runpy.run_path(sys.argv[1])\n"
        "from ckad import cache\n"
        "print(cache.cache_status().n_files, cache.cache_dir())\n"
    )
    pytest.importorskip("pwd")
    script = probe.script
    ran = subprocess.run(
        [sys.executable, "-c", homeless, script],
        capture_output=True,
        text=True,
        cwd=script.parent,
        env={**os.environ, "PYTHONPATH": str(script.parent)},
        check=True,
    )
    hits_found, (n_files, folder) = ran.stdout.split("\n")[0], ran.stdout.split("\n")[1].split()
    assert (hits_found, n_files) == ("0", "4")
    assert ran.stderr.count("CacheWarning") == 1
    assert not os.path.exists(folder)


@pytest.fixture
def answered():
    """Ctrl-C as a program in the foreground has it; one in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("answered")
def test_an_interrupt_that_a_compiler_swallows_is_raised_after_all():
    """Finalizers and callbacks lose what is raised in them, wherever Ctrl-C meets them."""

    @intrinsic
    def swallowing(typing_context, x):
        def emit(context, builder, signature, arguments):
            return arguments[0]

        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return x(x), emit

    with pytest.raises(KeyboardInterrupt):
        fresh(applier(swallowing))(1.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert fresh()(1) == 2


def test_what_a_whole_calls_is_compiled_within_it():
    @kernel
    def twice(x):
        return 2 * x

    @kernel
    def thrice(x):
        return twice(x) + x

    body = kernel(lambda x: thrice(x) + twice(1))
    signature = numba.int64(numba.int64)
    found = kernels.compile_whole(body, signature)
    assert len(entries()) == 1  # and has none of its own
    assert body(5) == 17
    assert found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
    assert kernel(lambda x: thrice(x) - twice(x))(5) == 5  # as what another kernel calls
    assert thrice(5) == 15  # and from Python
    assert twice(5) == 10
