"""Many runs: tables and figures as data, runs that can be stopped, one page.

`import experiments.study as s` has the words in which a paper's modules are written. Behind them,
`runner` makes the runs, `store` keeps them, `sections` puts the paper's numbers beside ours, and
`page` and `files` write that down. `program` is what programs that make runs share.
"""

# ruff: noqa: F401, I001
from experiments.study.experiment import (
    PERCENT, Call, Cell, Check, Claim, Experiment, Figure, Form, Measures, Place, Printed, Scale,
    Table, Training, better, call, cells, claim, places, printed, rises, table,
)  # fmt: skip
from experiments.study.measures import (
    Measure, OfRound, best_round, bytes_until, combined, in_round, last_rounds, metric,
    of_curve, of_run, over_rounds, roughness, rounds_until, total, until,
)  # fmt: skip
from experiments.study.plots import bars, curves, heat_maps, lines
from experiments.study.store import Results, Run
