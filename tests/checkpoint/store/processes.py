"""Children by fork: they have what the tests have imported, so that hundreds cost little.

None outlives a time that no test needs: a child that waits for ever fails, and its parent goes on.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
import warnings

LONGEST = 120  # seconds of a child


def fork(program):
    """Run ``program`` in a child and end it as Python ends a process; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LONGEST)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        program()
        status = 0
    except SystemExit:
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(status)


def ended(child):
    """The exit status of a child, negative for a signal; waits for it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
