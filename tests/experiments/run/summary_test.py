"""What a run's summary takes from its tables."""

from experiments.run import summary

COLUMNS = "round,local_test_loss_weighted_mean,local_validation_loss_weighted_mean,bytes_up\n"


def test_the_best_round_is_chosen_on_validation_examples(tmp_path):
    """Not on test examples; of equals the first, among rounds that were evaluated."""
    table = tmp_path / "metrics.csv"
    table.write_text(COLUMNS + "1,0.1,0.9,8\n2,,,8\n3,0.5,0.3,8\n4,0.4,0.3,8\n5,0.2,0.7,8\n")
    assert summary._best(table) == {
        "best_round": 3,
        "best_local_test_loss_weighted_mean": 0.5,
        "best_local_validation_loss_weighted_mean": 0.3,
    }


def test_without_validation_examples_no_round_is_chosen(tmp_path):
    table = tmp_path / "metrics.csv"
    table.write_text("round,local_test_loss_weighted_mean\n1,0.1\n")
    assert summary._best(table) == {}
