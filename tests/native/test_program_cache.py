"""Compiled programs: every process finds them, and no fault of their cache costs more than time."""

from __future__ import annotations

import ast
import ctypes
import errno
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from llvmlite import ir

import ckad
from ckad import cache
from ckad.cache import CacheWarning, cache_dir, cache_status
from ckad.engines.native.running.compiler import COMPILER, PROGRAMS, compile_module
from ckad.machine import compiler

DOUBLE = ir.DoubleType()
KEY = b"the digest of a tape"

PROBE = """
import ctypes, os, signal, sys, time
from ckad.engines.native.running.compiler import COMPILER, PROGRAMS, compile_module

PROGRAMS.sources = "those of this test"
PROGRAMS.edited = lambda: False
built = []

def build():
    built.append(True)
    time.sleep(0.1)
    return "define double @scaled(double %x) {\\n %y = fmul double %x, 3.0\\n ret double %y\\n}"

def run():
    for k in range(4):
        library = compile_module(bytes([k]), build)
        call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("scaled"))
        assert call(2.0) == 6.0, "wrong number"
    return len(built)
"""

RACE = """
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        signal.alarm(120)  # a child that hangs ends, and so does the wait for it
        os._exit(run())
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def scaled_by(factor):
    """A module whose function ``scaled`` multiplies by ``factor``."""
    module = ir.Module("scaled")
    function = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE]), "scaled")
    b = ir.IRBuilder(function.append_basic_block())
    b.ret(b.fmul(function.args[0], DOUBLE(factor)))
    return module


def never():
    raise AssertionError("the program is in the cache, so it is not built again")


def call(library, *arguments, name="scaled"):
    signature = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(arguments))
    return signature(library.address(name))(*arguments)


def forget():
    """What a new process knows: nothing of the programs compiled before."""
    gc.collect()
    COMPILER.libraries.clear()
    cache._directory.cache_clear()


def entries():
    return sorted(cache_dir().glob("programs-*/*"))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CKAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(PROGRAMS, "edited", lambda: False)
    forget()


def probe(script="print(run())"):
    """What the script printed, on stdout and stderr, in a new process."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROBE + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.stdout, done.stderr


def test_a_program_is_compiled_and_called():
    library = compile_module(KEY, lambda: scaled_by(3.0))
    assert call(library, 2.0) == 6.0
    assert (library.cached, library.seconds > 0) == (False, True)


def test_a_program_in_memory_is_not_built_again():
    library = compile_module(KEY, lambda: scaled_by(3.0))
    assert compile_module(KEY, never) is library


def test_a_program_on_disk_is_not_built_again():
    compile_module(KEY, lambda: scaled_by(3.0))
    forget()
    library = compile_module(KEY, never)
    assert (call(library, 2.0), library.cached, library.seconds) == (6.0, True, 0.0)


def test_facts_are_kept_beside_the_code():
    assert compile_module(KEY, lambda: (scaled_by(3.0), "α: 1\n")).facts == "α: 1\n"
    forget()
    assert compile_module(KEY, never).facts == "α: 1\n"


def test_the_second_process_builds_nothing():
    assert [probe(), probe()] == [("4\n", ""), ("0\n", "")]


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_of_processes_that_race_on_an_empty_cache_one_compiles_each_program():
    assert probe(RACE) == ("4\n", "")
    assert probe() == ("0\n", "")
    assert cache_status().n_files == 4


def test_threads_that_race_compile_once():
    built, libraries = [], []

    def build():
        built.append(True)
        return scaled_by(3.0)

    threads = [
        threading.Thread(target=lambda: libraries.append(compile_module(KEY, build)))
        for _ in range(8)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert (len(built), len(set(libraries)), call(libraries[0], 2.0)) == (1, 1, 6.0)


def test_a_library_frees_its_code_with_its_last_reference():
    library = compile_module(KEY, lambda: scaled_by(3.0))
    loaded = weakref.ref(library._loaded)
    del library
    gc.collect()
    assert (loaded(), list(COMPILER.libraries)) == (None, [])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from /proc")
def test_loading_again_and_again_takes_no_memory():
    table = ir.Module("table")
    values = ir.GlobalVariable(table, ir.ArrayType(ir.IntType(8), 2**22), "values")
    values.initializer = ir.Constant(values.value_type, bytearray(2**22))
    function = ir.Function(table, ir.FunctionType(ir.IntType(64), []), "first")
    b = ir.IRBuilder(function.append_basic_block())
    b.ret(b.ptrtoint(values, ir.IntType(64)))

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def touch():
        library = compile_module(KEY, lambda: table)
        place = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("first"))()
        ctypes.memset(place, 1, 2**22)

    touch(), touch()
    before = resident()
    for _ in range(16):
        touch()
    assert resident() - before < 16 * 2**22 / 4


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from /proc")
def test_compiling_again_and_again_takes_no_memory():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    for _ in range(20):
        compiler.try_out()
    gc.collect()
    before = resident()
    for _ in range(60):
        compiler.try_out()
    gc.collect()
    assert (resident() - before) / 60 < 20_000  # bytes; it was ten times that


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data + b"more",
        lambda data: b"not a cache entry",
    ],
    ids=["empty", "short", "half", "one byte less", "one bit", "last bit", "longer", "foreign"],
)
def test_a_damaged_entry_is_compiled_again_and_replaced(damage):
    compile_module(KEY, lambda: scaled_by(3.0))
    (entry,) = entries()
    entry.write_bytes(damage(entry.read_bytes()))
    forget()
    with pytest.warns(CacheWarning, match="was not read") as told:
        assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0
    assert len(told) == 1
    forget()
    assert call(compile_module(KEY, never), 2.0) == 6.0


def test_a_damaged_cache_is_told_once():
    keys = [bytes([k]) for k in range(3)]
    for key in keys:
        compile_module(key, lambda: scaled_by(3.0))
    for entry in entries():
        entry.write_bytes(b"")
    forget()
    with pytest.warns(CacheWarning) as told:
        assert [call(compile_module(key, lambda: scaled_by(3.0)), 2.0) for key in keys] == [6.0] * 3
    assert len(told) == 1


def test_object_code_that_does_not_load_is_compiled_again():
    compile_module(KEY, lambda: scaled_by(3.0))
    (entry,) = entries()
    code = compiler._decode(KEY, cache.read(entry))
    cache.write(entry, compiler._encode(KEY, code._replace(object=code.object[:100])))
    forget()
    with pytest.warns(CacheWarning, match="was not read"):
        assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0


def test_an_entry_of_another_key_is_not_used():
    compile_module(b"first", lambda: scaled_by(3.0))
    (entry,) = entries()
    compile_module(b"second", lambda: scaled_by(5.0))
    (other,) = set(entries()) - {entry}
    entry.write_bytes(other.read_bytes())
    forget()
    assert call(compile_module(b"first", lambda: scaled_by(3.0)), 2.0) == 6.0
    assert call(compile_module(b"second", never), 2.0) == 10.0


@pytest.mark.parametrize("fault", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_cache_that_cannot_be_written_is_told_once(fault, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(cache.tempfile, "NamedTemporaryFile", refuse)
    with pytest.warns(CacheWarning, match="was not written") as told:
        libraries = [compile_module(bytes([k]), lambda: scaled_by(3.0)) for k in range(3)]
    assert [call(library, 2.0) for library in libraries] == [6.0] * 3
    assert (len(told), entries()) == (1, [])


def test_a_disk_that_fills_up_leaves_no_file(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache.os, "replace", refuse)
    with pytest.warns(CacheWarning, match="No space left"):
        assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0
    assert entries() == []


@pytest.mark.skipif(os.name != "posix" or not os.geteuid(), reason="root writes everywhere")
def test_a_readonly_cache_is_read_and_not_written():
    compile_module(b"first", lambda: scaled_by(3.0))
    directory = entries()[0].parent
    directory.chmod(0o500)
    forget()
    assert call(compile_module(b"first", never), 2.0) == 6.0
    with pytest.warns(CacheWarning, match="was not written"):
        assert call(compile_module(b"second", lambda: scaled_by(5.0)), 2.0) == 10.0
    directory.chmod(0o700)


def test_a_cache_that_cannot_be_made_is_told_once(tmp_path):
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.warns(CacheWarning, match="is not used") as told:
        assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0
    assert len(told) == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_directory_that_is_not_private_is_refused(monkeypatch):
    cache_dir().mkdir()
    cache_dir().chmod(0o777)
    with pytest.warns(CacheWarning, match="chmod 700"):
        assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0
    cache_dir().chmod(0o700)
    forget()
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(os, "geteuid", lambda: cache_dir().stat().st_uid + 1)
    with pytest.warns(CacheWarning, match="belongs to user"):
        assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0
    assert entries() == []


def test_nothing_is_stored_once_the_sources_were_edited_under_a_running_process(monkeypatch):
    monkeypatch.setattr(PROGRAMS, "edited", lambda: True)
    assert call(compile_module(KEY, lambda: scaled_by(3.0)), 2.0) == 6.0
    assert entries() == []


# Data of a run, which no machine code follows from; what these import need not be looked at.
RUN = {"errors.py", "locks.py", "memory.py", "place.py"}


def imported_by(path):
    """The files of the package that a file of it imports by name, but not whole packages."""
    for line in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("ckad"):
            for name in (line.module, *(f"{line.module}.{alias.name}" for alias in line.names)):
                yield cache.PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")


def test_the_directory_is_named_after_every_module_that_lowering_uses():
    reached, left = {cache.PACKAGE / name for name in RUN}, set()
    left |= set(cache.PACKAGE.glob("engines/native/**/*.py"))
    while left:
        path = left.pop()
        reached.add(path)
        left |= {found for found in imported_by(path) if found.exists()} - reached
    named = {path for pattern in PROGRAMS.patterns for path in cache.PACKAGE.glob(pattern)}
    assert {str(path.relative_to(cache.PACKAGE)) for path in reached - named} == RUN


def test_another_cpu_has_a_directory_of_its_own(monkeypatch):
    compile_module(KEY, lambda: scaled_by(3.0))
    monkeypatch.setattr(compiler, "_cpu", lambda: ("triple", "cpu", "features"))
    assert COMPILER.entry(KEY).parent != entries()[0].parent


def test_the_programs_used_last_are_kept(monkeypatch):
    monkeypatch.setattr(compiler, "WRITES_BETWEEN_TRIMS", 1)
    monkeypatch.setattr(COMPILER, "most", (3, 2**20))
    for k in range(5):
        compile_module(bytes([k]), lambda: scaled_by(3.0))
        os.utime(COMPILER.entry(bytes([k])), (1e9 + k, 1e9 + k))
    compile_module(b"last", lambda: scaled_by(3.0))
    left = {COMPILER.entry(key) for key in (b"\x03", b"\x04", b"last")}
    assert set(entries()) == left


def test_loading_a_program_counts_as_its_use():
    compile_module(KEY, lambda: scaled_by(3.0))
    (entry,) = entries()
    os.utime(entry, (1e9, 1e9))
    forget()
    compile_module(KEY, never)
    assert entry.stat().st_mtime > 1e9


def test_the_programs_stay_below_a_number_of_bytes():
    for k in range(4):
        compile_module(bytes([k]), lambda: scaled_by(3.0))
    size = max(entry.stat().st_size for entry in entries())
    PROGRAMS.trim(100, 2 * size)
    assert len(entries()) == 2


def test_ir_and_assembly_are_there_for_a_program_from_the_cache():
    fresh = compile_module(KEY, lambda: scaled_by(3.0))
    shown = fresh.llvm, fresh.asm
    del fresh
    forget()
    cached = compile_module(KEY, never)
    assert cached.cached
    assert (cached.llvm, cached.asm) == shown
    assert "fmul double" in cached.llvm
    assert "scaled:" in cached.asm


def test_the_address_of_an_unknown_function_is_a_key_error():
    with pytest.raises(KeyError, match="missing"):
        compile_module(KEY, lambda: scaled_by(3.0)).address("missing")


def test_a_product_and_a_sum_are_rounded_twice():
    library = compile_module(
        KEY,
        lambda: (
            """
        define double @sum(double %x, double %y, double %z) {
          %product = fmul double %x, %y
          %sum = fadd double %product, %z
          ret double %sum
        }"""
        ),
    )
    x = 1 + 2.0**-30
    assert call(library, x, x, -1.0, name="sum") == x * x - 1.0
    assert "fmadd" not in library.asm


def calls(name, result="double", arguments=("double",)):
    """The text of a module whose function ``scaled`` passes its argument on to ``name``."""
    types = ", ".join(arguments)
    return f"""
    declare {result} @{name}({types})
    define double @scaled(double %x) {{
      %y = call {result} @{name}(double %x)
      ret double %y
    }}"""


@pytest.mark.parametrize(("name", "expected"), [("exp", 1.0), ("cos", 1.0), ("llvm.exp.f64", 1.0)])
def test_the_math_library_can_be_called(name, expected):
    assert call(compile_module(KEY, lambda: calls(name)), 0.0) == expected


def test_scipys_digamma_can_be_called():
    library = compile_module(KEY, lambda: calls("ckad_psi"))
    assert call(library, 1.0) == pytest.approx(-0.5772156649015329, rel=1e-15)
    forget()
    assert call(compile_module(KEY, never), 1.0) == call(library, 1.0)


def test_a_matrix_product_of_blas_can_be_called():
    library = compile_module(
        KEY,
        lambda: (
            """
        declare void @ckad_dgemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
        @n = private constant i32 1
        @one = private constant double 1.0
        @letter = private constant i8 78
        define double @scaled(double %x) {
          %a = alloca double
          %c = alloca double
          store double %x, ptr %a
          store double 0.0, ptr %c
          call void @ckad_dgemm(ptr @letter, ptr @letter, ptr @n, ptr @n, ptr @n, ptr @one,
            ptr %a, ptr @n, ptr %a, ptr @n, ptr @one, ptr %c, ptr @n)
          %y = load double, ptr %c
          ret double %y
        }"""
        ),
    )
    assert call(library, 3.0) == 9.0


def test_generated_code_may_release_and_take_the_gil():
    library = compile_module(
        KEY,
        lambda: (
            """
        declare ptr @PyEval_SaveThread()
        declare void @PyEval_RestoreThread(ptr)
        declare ptr @PyObject_CallNoArgs(ptr)
        define ptr @run(ptr %callable) {
          %state = call ptr @PyEval_SaveThread()
          call void @PyEval_RestoreThread(ptr %state)
          %result = call ptr @PyObject_CallNoArgs(ptr %callable)
          ret ptr %result
        }"""
        ),
    )
    run = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(library.address("run"))
    assert run(lambda: "called") == "called"


def test_scipy_is_not_imported_for_a_program_that_does_not_need_it():
    script = "run(); print('scipy.linalg' in sys.modules, 'scipy.special' in sys.modules)"
    assert probe(script) == ("False False\n", "")


def test_a_symbol_that_nobody_has_is_an_error():
    with pytest.raises(RuntimeError, match="scaled"):
        compile_module(KEY, lambda: calls("nobody_has_this"))
    assert entries() == []


def test_without_loops_all_schedules_share_a_program_and_it_has_no_code_for_threads():
    def function(x):
        return np.sum(np.sin(x) * x)

    x = np.linspace(0.1, 1.0, 7)
    ckad.clear_caches()
    plain, asked = (
        ckad.value_and_grad(function, engine="native", schedule=name).compiled(x)
        for name in ("auto", "two_level")
    )
    assert asked.loaded is not plain.loaded
    assert asked.loaded.program.library is plain.loaded.program.library
    assert not plain.loaded.program.facts.shares
    with pytest.raises(KeyError):
        plain.loaded.program.library.address("worker")
