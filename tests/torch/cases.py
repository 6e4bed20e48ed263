"""What makes a file of this folder a case: functions, each of which is one line of output."""
import sys
import time
import traceback


class Failed(Exception):
    """What was expected did not happen; the text says it all."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def main(*cases):
    """Runs functions; each is one line of output. Names on the command line choose."""
    bad = 0
    for case in cases:
        if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
            continue
        started = time.monotonic()
        try:
            case()
            print(f"ok    {case.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as e:  # one that breaks does not keep the others from running
            bad += 1
            text = str(e) if isinstance(e, Failed) else traceback.format_exc()
            print(f"FAIL  {case.__name__} ({time.monotonic() - started:.1f} s): {case.__doc__ or ''}\n{text}", flush=True)
    sys.exit(1 if bad else 0)
