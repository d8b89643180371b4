"""Table 2 and Figure 2 of LG-FedAvg: visual question answering and its communication."""

from collections.abc import Callable, Iterable

import experiments.study as s
from experiments.lg_fedavg.settings import DIGITS, FEDAVG, LG, flags

EASY, VQA = "easy-VQA", "VQA v2"
# Row -> flags beside those of the data; the first two share a network.
METHODS = {
    FEDAVG: flags("method=fed_avg"),
    LG: flags("method=lg_fedavg local_layers=word_embedding,lstm_1,lstm_2"),
    "FedAvg, question alone": flags("method=fed_avg model=vqa_question_lstm"),
    "FedAvg, image alone": flags("method=fed_avg model=vqa_image"),
}
_COMPARED = (FEDAVG, LG)
_QUICK_ROWS = (*_COMPARED, "FedAvg, question alone")
VALIDATION = "local_validation_accuracy_mean"
_MB = s.Form(digits=2, factor=1e-6)

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


def _cells(data: str, common: str, *rows: str) -> tuple[s.Cell, ...]:
    return s.cells(f"{data}/{{row}}", flags(common), row={row: METHODS[row] for row in rows})


def goal(data: str) -> s.Measure:
    """The highest accuracy on validation examples that both methods reach."""
    both = (f"{data}/{row}" for row in _COMPARED)
    return s.combined(min, *(s.of_curve(cell, VALIDATION, lambda _, y: max(y)) for cell in both))


def until_goal(data: str, row: str, what: Callable[[s.Run, int], float]) -> s.Measure:
    """What a function gives of a run and the first measured round in which it has the goal."""
    return s.until(f"{data}/{row}", VALIDATION, goal(data), what)


# On test examples, in the round with the lowest loss on validation examples.
_ACCURACY = "best_local_test_accuracy_mean"


def _table(data: str, rows: Iterable[str] = METHODS) -> s.Table:
    of_all = {
        "Local test accuracy (%)": (_ACCURACY, s.PERCENT),
        "Parameters sent": ("parameters_sent", s.Form(digits=0)),
    }
    places = [s.Place("Goal", "Goal accuracy (%)", goal(data))]
    places += s.places([*rows], of_all, lambda row, name: s.metric(f"{data}/{row}", name))
    for column, what, form in (
        ("Rounds to the goal", lambda _, reached: reached, s.Form(digits=1)),
        ("MB to the goal", s.bytes_until, _MB),
    ):
        both = {row: until_goal(data, row, what) for row in _COMPARED}
        places += [s.Place(row, column, measure, form) for row, measure in both.items()]
        ratio = both[FEDAVG] / both[LG]
        places.append(s.Place(f"{FEDAVG} / {LG}", column, ratio, s.Form(digits=2)))
    return s.Table(data, tuple(places))


def _claims(data: str, *alone: str) -> list[s.Claim]:
    def accuracy(row: str) -> s.Measure:
        return s.metric(f"{data}/{row}", _ACCURACY)

    fewer = f"({data}) LG-FedAvg reaches the goal accuracy with fewer bytes than FedAvg."
    higher = f"({data}) LG-FedAvg's accuracy is higher than FedAvg's after the same rounds."
    both = f"Ours ({data}): with image and question FedAvg is better than with the {{}} alone."
    sent = {row: until_goal(data, row, s.bytes_until) for row in _COMPARED}
    return [
        s.better(fewer, sent.__getitem__, FEDAVG, LG, by="MB", form=_MB),
        s.better(higher, accuracy, LG, FEDAVG),
        *(s.better(both.format(one), accuracy, FEDAVG, f"FedAvg, {one} alone") for one in alone),
    ]


EXPERIMENT = s.Experiment(
    "lg_fedavg.table2",
    "Table 2 and Figure 2: visual question answering",
    scales={
        "smoke": s.Scale(_cells(DIGITS, _SMOKE, *METHODS), 1, "Only to see that it runs: digits."),
        "quick": s.Scale(_cells(EASY, _QUICK, *_QUICK_ROWS), 4, "Not the paper's data: easy-VQA."),
        "paper": s.Scale(
            _cells(EASY, _PAPER, *METHODS) + _cells(VQA, _WIDE, *_COMPARED), 5, "5 seeds."
        ),
    },
    tables=[_table(EASY), _table(VQA, _COMPARED), _table(DIGITS)],
    claims=[*_claims(EASY, "question", "image"), *_claims(VQA)],
    figures=[
        s.curves(
            "Local test accuracy over rounds",
            "The convergence of test accuracy over communication rounds, for FedAvg and LG-FedAvg. "
            "LG-FedAvg is the better one after a number of rounds, and goes on improving.",
            {
                data: {row: (f"{data}/{row}", "local_test_accuracy_mean") for row in rows}
                for data, rows in {EASY: METHODS, VQA: _COMPARED, DIGITS: METHODS}.items()
            },
        )
    ],
)
