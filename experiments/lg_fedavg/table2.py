"""Table 2 and Figure 2 of LG-FedAvg: visual question answering and its communication."""

from collections.abc import Iterable, Iterator

import experiments.study as s
from experiments.lg_fedavg.settings import DIGITS, FEDAVG, LG, flags

EASY, VQA = "easy-VQA", "VQA v2"
# Section 2.2 and equation 1.
NORMS, LOCAL_LOSS = "LG-FedAvg, weights by gradient norm", "LG-FedAvg, local loss"
_LG = "method=lg_fedavg local_layers=word_embedding,lstm_1,lstm_2"
# Row -> flags beside those of the data; those without "alone" share a network.
METHODS = {
    FEDAVG: flags("method=fed_avg"),
    LG: flags(_LG),
    NORMS: flags(f"{_LG} norm_weights=true"),
    LOCAL_LOSS: flags(f"{_LG} local_loss=supervised"),
    "FedAvg, question alone": flags("method=fed_avg model=vqa_question_lstm"),
    "FedAvg, image alone": flags("method=fed_avg model=vqa_image"),
}
_COMPARED = (FEDAVG, LG)
_QUICK_ROWS = [*METHODS][:-1]
VALIDATION, _TEST = "local_validation_accuracy_mean", "local_test_accuracy_mean"
_MB, _COUNT = s.Form(digits=2, factor=1e-6), s.Form(digits=1)

# Batch size, rate, momentum, decay and the LSTM of section 7.1.3 and Table 7.
_TABLE_7 = (
    "model=vqa_lstm batch_size=100 client_learning_rate=0.01 client_momentum=0.9 "
    "learning_rate_decay=0.0005 partition=dirichlet dirichlet.alpha=0.5 validation_fraction=0.1"
)
_SMOKE = f"{_TABLE_7} dataset=digits_vqa num_clients=3 rounds=2 local_steps=2"
_EASY = f"{_TABLE_7} dataset=easy_vqa local_epochs=1 clients_per_round=10"
_QUICK = f"{_EASY} num_clients=20 rounds=40 eval_every=2"
_PAPER = f"{_EASY} num_clients=50 rounds=100"
# Only for what the paper compares: the networks of one channel are narrow ones.
_WIDE = f"{_PAPER} dataset=vqa model=vqa_lstm_wide"


def _cells(data: str, common: str, *rows: str, num_seeds=None) -> tuple[s.Cell, ...]:
    chosen = {row: METHODS[row] for row in rows}
    return s.cells(f"{data}/{{row}}", flags(common), num_seeds=num_seeds, row=chosen)


def goal(data: str, rows: Iterable[str] = _COMPARED) -> s.Measure:
    """The highest accuracy on validation examples that all rows reach."""
    return s.combined(min, *(s.best_round(f"{data}/{row}", VALIDATION) for row in rows))


def until_goal(data: str, row: str, what: s.OfRound, rows: Iterable[str] = _COMPARED) -> s.Measure:
    """What a function gives of a run and the first measured round in which it has the goal."""
    return s.until(f"{data}/{row}", VALIDATION, goal(data, rows), what)


def _table(data: str, rows: Iterable[str] = METHODS) -> s.Table:
    of_all = {
        # In the round with the lowest loss on validation examples.
        "Local test accuracy (%)": ("best_local_test_accuracy_mean", s.PERCENT),
        "Parameters sent": ("parameters_sent", s.Form(digits=0)),
    }
    places = [s.Place("Goal", "Goal accuracy (%)", goal(data))]
    places += s.places([*rows], of_all, lambda row, name: s.metric(f"{data}/{row}", name))
    later = {"Rounds to the goal": (s.rounds_until, _COUNT), "MB to the goal": (s.bytes_until, _MB)}
    for column, (what, form) in later.items():
        both = {row: until_goal(data, row, what) for row in _COMPARED}
        places += [s.Place(row, column, measure, form) for row, measure in both.items()]
        ratio = both[FEDAVG] / both[LG]
        places.append(s.Place(f"{FEDAVG} / {LG}", column, ratio, s.Form(digits=2)))
    return s.Table(data, tuple(places))


def _claims(data: str) -> Iterator[s.Claim]:
    sent = {row: until_goal(data, row, s.bytes_until) for row in _COMPARED}
    text = f"({data}) LG-FedAvg reaches the goal accuracy with fewer bytes than FedAvg."
    yield s.better(text, sent.__getitem__, FEDAVG, LG, by="MB", form=_MB)
    # Figure 2: "outperforms FedAvg after ... rounds while requiring only ... of the number of
    # parameters ... and continues to improve".
    late = {row: s.last_rounds(f"{data}/{row}", _TEST) for row in _COMPARED}
    last_20 = s.last_rounds(f"{data}/{LG}", _TEST, 20)
    size = {row: s.metric(f"{data}/{row}", "parameters_sent") for row in _COMPARED}
    yield s.claim(
        f"({data}) LG-FedAvg outperforms FedAvg in the end, with fewer parameters, and continues "
        "to improve.",
        {
            "last 10 rounds, LG-FedAvg - FedAvg": late[LG] - late[FEDAVG],
            "LG-FedAvg, last 10 rounds - last 20": late[LG] - last_20,
            "1 - share of the parameters that LG-FedAvg sends": 1 - size[LG] / size[FEDAVG],
        },
    )


_ROUNDS = {row: until_goal(EASY, row, s.rounds_until, (LG, NORMS)) for row in (LG, NORMS)}
_FASTER = s.claim(
    f"({EASY}) Weights by the norm of the gradient speed up LG-FedAvg's convergence.",
    {"rounds to the accuracy of both, without - with": _ROUNDS[LG] - _ROUNDS[NORMS]},
    form=_COUNT,
)
# Four seeds said that 13 and 18 would decide the claims on the first three rows: a third more.
_JUDGED = _cells(EASY, _QUICK, *_QUICK_ROWS[:3])
_OTHERS = _cells(EASY, _QUICK, *_QUICK_ROWS[3:], num_seeds=4)
_LARGE = _cells(EASY, _PAPER, *METHODS) + _cells(VQA, _WIDE, *_COMPARED)

EXPERIMENT = s.Experiment(
    "lg_fedavg.table2",
    "Table 2 and Figure 2: visual question answering",
    scales={
        "smoke": s.Scale(_cells(DIGITS, _SMOKE, *METHODS), 1, "Only to see that it runs: digits."),
        "quick": s.Scale(_JUDGED + _OTHERS, 24, "Not the paper's data: easy-VQA."),
        "paper": s.Scale(_LARGE, 5, "5 seeds."),
    },
    tables=[_table(EASY), _table(VQA, _COMPARED), _table(DIGITS)],
    claims=[*_claims(EASY), _FASTER, *_claims(VQA)],
    figures=[
        s.curves(
            "Local test accuracy over rounds",
            "The convergence of test accuracy over communication rounds, for FedAvg and LG-FedAvg. "
            "LG-FedAvg is the better one after a number of rounds, and goes on improving.",
            {
                data: {row: (f"{data}/{row}", _TEST) for row in rows}
                for data, rows in {EASY: METHODS, VQA: _COMPARED, DIGITS: METHODS}.items()
            },
        )
    ],
)
