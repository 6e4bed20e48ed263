"""What the runs of rows say: the table, what was before, and what each what-if added."""
import json
import statistics

IDLE_ENOUGH = 0.5
CABLE_PCT = 0.2

BEFORE = (("before_ms", 9, 2), ("before_pct", 10, 1))
COLUMNS = (("job", 27, None), ("hosts", 5, 0), ("real_hosts", 10, 0), ("real_ms", 9, 2), ("predicted_ms", 12, 2), ("diff_pct", 8, 1),
           ("noise_pct", 9, 1), *BEFORE, ("exposed_real_ms", 15, 2), ("exposed_ms", 10, 2), ("exposed_pct", 11, 1), ("judged", 18, None),
           ("what_if", 0, None))
PAIRS = (("job", 27, None), ("real_hosts", 10, 0), ("base", 16, None), ("real_adds_ms", 12, 2), ("nbox_adds_ms", 12, 2), ("injected_ms", 11, 2),
         ("real_pct", 8, 1), ("nbox_pct", 8, 1))


def show(columns, values):
    cells = []
    for name, width, digits in columns:
        v = values[name]
        text = "-" if v is None else v if digits is None or isinstance(v, str) else f"{v:.{digits}f}"
        cells.append(f"{text:<{width}}" if digits is None else f"{text:>{width}}")
    print(" ".join(cells).rstrip(), flush=True)


def show_head(columns):
    show(columns, {name: name for name, _, _ in columns})


def median_of(runs, what):
    values = [getattr(r, what) for r in runs if getattr(r, what) is not None]
    return statistics.median(values) if values else None


def judgement(row, idle, cables_pct):
    if row.later:
        return "later"
    if cables_pct is None or cables_pct > CABLE_PCT:
        return "machine: cables"
    if idle is None or idle < IDLE_ENOUGH:
        return f"machine: {0 if idle is None else idle * 100:.0f} % idle"
    return "yes"


def facts_of(row, facts):
    what_if = " ".join(row.what_if) or "-"
    return {"job": row.name, "hosts": row.hosts, "gpus_per_host": row.gpus, "what_if": f"{what_if} ({row.note})" if row.note else what_if,
            "base": row.base, "program": row.program, "real_flags": row.real, **facts}


def figures(row, runs, k, facts):
    """A row of the table: @k hosts are real under nbox."""
    real, predicted = median_of(runs[0], "iteration_ms"), median_of(runs[k], "iteration_ms")
    medians = [r.iteration_ms for r in runs[0]]
    exposed_real, exposed, idle = median_of(runs[0], "exposed_ms"), median_of(runs[k], "exposed_ms"), median_of(runs[0], "idle")
    noise_pct = (max(medians) - min(medians)) / real * 100
    return {"real_hosts": k, "judged": judgement(row, idle, facts["cables_pct"]), "real_ms": real, "predicted_ms": predicted,
            "diff_pct": (predicted / real - 1) * 100, "noise_pct": noise_pct, "tolerance_pct": max(row.tolerance_pct, noise_pct),
            "exposed_real_ms": exposed_real, "exposed_ms": exposed,
            "exposed_pct": None if exposed is None or exposed_real is None else (exposed - exposed_real) / real * 100,
            "injected_ms": median_of(runs[k], "injected_ms"), "wall_ms": median_of(runs[k], "wall_ms"),
            "cpu_idle_pct": None if idle is None else idle * 100, "real_rounds_ms": medians,
            "predicted_rounds_ms": [r.iteration_ms for r in runs[k]], "summaries": [r.summary for r in runs[k]]}


class Table:
    def __init__(self, version, before):
        self.version, self.rows, self.before = version, [], {}
        if before:
            with open(before) as f:
                self.before = {(r["job"], r["real_hosts"]): r for r in json.load(f)["rows"]}
        self.columns = tuple(c for c in COLUMNS if before or c not in BEFORE)
        show_head(self.columns)

    def add(self, row, runs, facts):
        for k in (k for k in runs if k != 0):
            self._add({**facts_of(row, facts), **figures(row, runs, k, facts)})

    def add_nothing(self, row, facts, why):
        self._add({**dict.fromkeys(name for name, _, _ in COLUMNS), **facts_of(row, facts), "judged": why})

    def _add(self, values):
        before = self.before.get((values["job"], values["real_hosts"]), {})
        values.update(version=self.version, before_ms=before.get("predicted_ms"), before_pct=before.get("diff_pct"))
        self.rows.append(values)
        show(self.columns, values)

    def end(self):
        """What follows the table."""
        self._show_judged()
        self._show_pairs()

    def _show_judged(self):
        judged = [v for v in self.rows if v["judged"] == "yes"]
        if not judged:
            return
        diffs = sorted(abs(v["diff_pct"]) for v in judged)
        missed = [v for v in judged if abs(v["diff_pct"]) > v["tolerance_pct"]]
        print(f"{len(judged)} of {len(self.rows)} rows are judged: predicted is off by {statistics.median(diffs):.1f} % (median), at most "
              f"{diffs[-1]:.1f} %; within tolerance: {len(judged) - len(missed)}")
        if missed:
            print("not: " + ", ".join(f"{v['job']} ({v['real_hosts']} real)" for v in missed))

    def _show_pairs(self):
        """What a what-if adds to an iteration: to the real one, to the predicted one, and what nbox says."""
        by_name = {(v["job"], v["real_hosts"]): v for v in self.rows if v["real_ms"] is not None}
        pairs = [(v, by_name[v["base"], v["real_hosts"]]) for v in by_name.values() if (v["base"], v["real_hosts"]) in by_name]
        if not pairs:
            return
        print("\nwhat each what-if adds to an iteration: real, predicted, and injected as nbox says; injected less either, of the iteration")
        show_head(PAIRS)
        for v, base in pairs:
            real, nbox, injected = v["real_ms"] - base["real_ms"], v["predicted_ms"] - base["predicted_ms"], v["injected_ms"]
            v.update(real_adds_ms=real, nbox_adds_ms=nbox,
                     real_pct=None if injected is None else (injected - real) / v["real_ms"] * 100,
                     nbox_pct=None if injected is None else (injected - nbox) / v["real_ms"] * 100)
            show(PAIRS, v)
