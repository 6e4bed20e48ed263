/* The subcommands of nbox: one file each. argv[0] is the subcommand's name. All
 * return an exit code: 0 good, 1 failed, 2 wrong usage; `run` the job's own. */
#pragma once

int cmd_preload(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_retime(int argc, char **argv);
int cmd_onesided(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_kernels(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_models(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_reshard(int argc, char **argv);
int cmd_pipe(int argc, char **argv);
int cmd_optimize(int argc, char **argv);
int cmd_mem(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_shard(int argc, char **argv);
int cmd_rf(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_blame(int argc, char **argv);
int cmd_overheads(int argc, char **argv);
int cmd_oracle(int argc, char **argv);
