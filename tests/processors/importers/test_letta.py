"""Samples of a Letta dataset, from lines of JSON and rows of CSV."""

from processors.importers.letta import Sample, read_dataset


def test_lines_of_json_are_samples_with_their_places() -> None:
    text = '{"input": "a", "ground_truth": "b"}\n\n{"prompt": "c", "metadata": {"agent_args": {"x": 1}}}\n'

    samples = read_dataset(text, "d.jsonl")

    assert [
        Sample(0, "d.jsonl", 1, ("a",), "b", False),
        Sample(1, "d.jsonl", 3, ("c",), None, True),
    ] == samples


def test_rows_of_csv_are_samples_and_brackets_make_lists() -> None:
    text = (
        "input,ground_truth,agent_args\n"
        '"a, b", c ,\n'
        '"[""x"", ""y""]","[""1"", ""2""]","{""k"": 1}"\n'
        "d,None,\n"
    )

    samples = read_dataset(text, "d.CSV")

    assert [
        Sample(0, "d.CSV", 2, ("a, b",), "c", False),
        Sample(1, "d.CSV", 3, ("x", "y"), ["1", "2"], True),
        Sample(2, "d.CSV", 4, ("d",), None, False),
    ] == samples


def test_a_cell_of_several_lines_does_not_shift_the_lines_after_it() -> None:
    samples = read_dataset('input\n"a\nb"\nc\n', "d.csv")

    assert [
        Sample(0, "d.csv", 2, ("a\nb",), None, False),
        Sample(1, "d.csv", 4, ("c",), None, False),
    ] == samples


def test_what_is_no_sample_is_a_problem_in_its_place() -> None:
    text = (
        '{"input": 1}\n{\n[]\n{"input": "a", "ground_truth": ["b"]}\n{"input": ["a", 2]}\n'
        '{"input": "a", "ground_truth": 4}\n{"input": "last"}'
    )

    *problems, last = read_dataset(text, "d.jsonl")

    assert [
        "d.jsonl:1: input: expected a text or a list of texts",
        "d.jsonl:2: not valid JSON: expected one sample on each line",
        'd.jsonl:3: expected an object with the key "input"',
        "d.jsonl:4: ground_truth: expected one text, or one for each text of a list of inputs",
        "d.jsonl:5: input: expected a text or a list of texts",
        "d.jsonl:6: ground_truth: expected a text or a list of texts",
    ] == list(map(str, problems))
    assert Sample(6, "d.jsonl", 7, ("last",), None, False) == last


def test_a_table_without_inputs_and_a_broken_list_are_problems() -> None:
    assert ['d.csv:1: expected a first row of names with "input" among them'] == list(
        map(str, read_dataset("question\na\n", "d.csv"))
    )
    assert ["d.csv:2: a cell in brackets has to be a JSON list of texts"] == list(
        map(str, read_dataset("input\n[a]\n", "d.csv"))
    )
