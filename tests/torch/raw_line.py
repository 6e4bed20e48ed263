"""LD_PRELOAD=libnbox.so torchrun train.py: no `nbox run`; the cluster is in ./nbox.yaml and in variables. Two ranks are real."""
import os
import sys
import tempfile

from harness import BUILD, all_said, environment, execute, expect, free_port, main, script, torchrun

FILE = 'cluster: {nodes: 64}\nmodel: "ring:bw=400Gbps,alpha=5us"\n'
SUMMARY = "-- nbox: 128 ranks (64 nodes x 2), 2 real; exchange none; model ring:bw=400Gbps,alpha=5us; seed 1"


def raw(command, file=FILE, timeout=300, **variables):
    """The command's output, run in a folder of its own, with nbox.yaml if there is a text for it."""
    with tempfile.TemporaryDirectory(prefix="nbox-torch-") as d:
        if file:
            with open(os.path.join(d, "nbox.yaml"), "w") as f:
                f.write(file)
        env = environment({"LD_PRELOAD": os.path.join(BUILD, "libnbox.so"), **variables})
        if "NBOX_MODEL" not in variables:
            env.pop("NBOX_MODEL")  # the file names one
        return execute(["env", "-C", d, *command], timeout, env)


def torchrun_takes_the_file():
    """Forms of init_process_group; the summary comes once, at the end."""
    forms = ["env", "both"]
    r = raw(torchrun(2, "init.py", forms))
    all_said(r, forms, range(2))
    expect(r.text.count(SUMMARY) == 1, r.text)
    r = raw(torchrun(2, "ddp_tutorial.py", flags=["--standalone"]))
    expect("[rank 0/128] 20 iterations" in r.text and r.text.count(SUMMARY) == 1, r.text)


def variables_go_before_the_file():
    """Variables go before the file, and rank 0 is virtual."""
    r = raw(torchrun(2, "init.py", ["eager"]), NBOX_NODES="4", NBOX_AS_NODE="last", NBOX_QUIET="1")
    all_said(r, ["eager"], range(6, 8))
    expect("-- nbox" not in r.text, r.text)


def without_a_cluster_the_job_is_what_it_was():
    """The job is what it was, and one line says so."""
    r = raw(torchrun(2, "init.py", ["env"]), file=None)
    all_said(r, ["env"], range(2))
    expect(r.text.count("no virtual cluster is described: the job runs without nbox") == 1 and "-- nbox" not in r.text, r.text)


def a_wrong_file_is_told_by_line():
    """No job without nbox, and no hang: the sentence names file, line and column."""
    try:
        r = raw(torchrun(2, "init.py", ["env"]), file=FILE + "modle: ring\n")
    except Exception as e:
        expect("nbox.yaml:3:1: unknown key 'modle'; did you mean 'model'?" in str(e), str(e))
    else:
        expect(False, r.text)


def accelerate_is_understood():
    """accelerate launch."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines=1", "--num_processes=2",
               "--mixed_precision=no", "--dynamo_backend=no", f"--main_process_port={free_port()}", script("init.py"), "env"]
    r = raw(command)
    all_said(r, ["env"], range(2))
    expect(r.text.count(SUMMARY) == 1, r.text)


def srun_is_understood():
    """What srun tells its tasks; PyTorch's own store would wait for 126 ranks that are not there."""
    tasks = "for i in 0 1; do SLURM_PROCID=$i SLURM_LOCALID=$i \"$@\" & pids=\"$pids $!\"; done; for p in $pids; do wait $p || exit; done"
    r = raw(["sh", "-c", tasks, "srun", sys.executable, script("under_srun.py"), script("init.py"), "env"], SLURM_NTASKS="2", SLURM_NNODES="1",
            SLURM_NTASKS_PER_NODE="2", SLURM_JOB_ID="1", SLURM_STEP_ID="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    all_said(r, ["env"], range(2))
    expect(r.text.count(SUMMARY) == 1, r.text)


main(torchrun_takes_the_file, variables_go_before_the_file, without_a_cluster_the_job_is_what_it_was, a_wrong_file_is_told_by_line,
     srun_is_understood, accelerate_is_understood)
