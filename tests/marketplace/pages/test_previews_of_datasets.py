from marketplace.models import Dataset
from marketplace.pages.previews import CLASSES_SHOWN, VALUES_SHOWN, preview_of


def dataset(task: str = "classes", **stored: object) -> Dataset:
    empty: dict[str, object] = {
        "inputs": [],
        "targets": [],
        "input_spread": {},
        "target_spread": None,
        "class_counts": None,
        "labels": [],
    }
    return Dataset(task=task, preview={**empty, **stored})


def test_classes_are_called_by_their_labels_where_the_file_had_words():
    preview = preview_of(dataset(inputs=[[0.5]], targets=[[1]], class_counts=[30, 10], labels=["cat", "dog"]))
    assert preview.rows[0].target == "dog"
    assert [(one.name, one.rows, one.share_of_largest) for one in preview.classes] == [
        ("cat", 30, 1.0),
        ("dog", 10, 10 / 30),
    ]


def test_classes_without_rows_are_no_bars():
    assert [one.name for one in preview_of(dataset(class_counts=[5, 0, 5])).classes] == ["0", "2"]


def test_of_many_classes_the_most_frequent_are_shown():
    preview = preview_of(dataset(class_counts=list(range(1, 51))))
    assert preview.classes[0].name == "49"
    assert len(preview.classes) == CLASSES_SHOWN
    assert preview.classes_left_out == 50 - CLASSES_SHOWN


def test_a_long_row_is_cut_and_says_so():
    preview = preview_of(dataset("numbers", inputs=[[1.0] * 16], targets=[[0.123456, 2.0]]))
    assert len(preview.rows[0].inputs) == VALUES_SHOWN
    assert preview.rows_cut
    assert preview.rows[0].target == "0.1235, 2"
