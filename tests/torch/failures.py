"""A rank of the virtual cluster dies without a word: PyTorch finds out as it would, and says what it would."""
import os
import pickle
import re
import tempfile

from harness import emulate, expect, main

STEPS, TIMEOUT_S, DIES_AT = 50, 3, 10


def the_watchdog_ends_the_job_and_the_flight_recorder_says_where():
    with tempfile.TemporaryDirectory(prefix="nbox-recorder-") as d:
        # as long as a dump takes, not the minute that PyTorch gives it
        env = {"TORCH_FR_BUFFER_SIZE": "100", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_FR_DUMP_TEMP_FILE": d + "/rank",
               "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": d + "/rank", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "1000"}
        # the job's exit code is expected, so that nbox run ends with 0
        result = emulate(4, 2, "steps.py", (STEPS, TIMEOUT_S), env=env,
                         nbox=("--steps", "ops=1,op=allreduce", "--what-if", f"fail:rank=5,from={DIES_AT}steps,how=silent",
                               "--expect", "exit_code == 1"))
        said = re.search(rf"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum={DIES_AT}, OpType=ALLREDUCE, .*"
                         rf"Timeout\(ms\)={TIMEOUT_S}000\) ran for (\d+) milliseconds", result.text)
        expect(said and int(said[1]) >= 1000 * TIMEOUT_S, "no watchdog's word:\n" + result.text[-4000:])
        dumps = sorted(os.listdir(d))  # one of the processes at least has had the time
        expect(dumps, "the flight recorder has written nothing")
        with open(os.path.join(d, dumps[0]), "rb") as f:
            states = [e["state"] for e in pickle.load(f)["entries"]]
        expect(states[-1] != "completed" and states[:-1] == ["completed"] * (DIES_AT - 1), f"the flight recorder says {states}")
    for rank in (0, 1):
        n = len(result.ops("AllReduce", world_rank=rank))
        expect(n == DIES_AT - 1, f"the record has {n} all-reduces of rank {rank}")
    expect(any("never completes: world rank 5 is gone" in w for w in result.summary["warnings"]), f"{result.summary['warnings']}")


main(the_watchdog_ends_the_job_and_the_flight_recorder_says_where)
