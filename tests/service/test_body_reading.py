"""What is said of a body that is not of its type: where it is wrong, what stands there, and what to write instead."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec")

from linmax.service.schemas import Batch, BodyReader, LearnBody, Refusal

CASES = [
    (LearnBody, '{"attributes": {"n": 1, "colour": "red"}, "label": "x"}', "attributes['colour']",
     '"red"; attributes are numbers: write a category as {"colour=red": 1}'),
    (LearnBody, '{"attributes": {"n": 1, "m": null}, "label": "x"}', "attributes['m']", "got `null`: null"),
    (LearnBody, '{"attributes": {"n": 1, "m": 1e999}, "label": "x"}', "attributes['m']", "out of range: Infinity"),
    (LearnBody, '{"scores": {"r": {"a": 1, "b": "q"}}, "label": "x"}', "scores['r']['b']", '"q"'),
    (Batch[LearnBody], '{"items": [{"attributes": {"a": 1}, "label": "q"}, {"attributes": {"a": true}, "label": "q"}]}',
     "items[1].attributes['a']", "got `bool`: true"),
    (LearnBody, '{"attributes": {"": 1}, "label": "x"}', "attributes", "a name in it"),
    (LearnBody, '{"attributes": {"a": "q"}, "label": ', "attributes[...]", "got `str`"),  # not JSON behind it
    (LearnBody, '{"attributes": {"a": "q"}, "label": ' + "[" * 100_000, "attributes[...]", "got `str`"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "body", "field", "told"), CASES)
def test_a_value_of_another_type_is_named_and_shown(form, body, field, told):
    with pytest.raises(Refusal) as refused:
        BodyReader(form).read(body.encode())
    assert refused.value.problem.field == field
    assert told in str(refused.value)
    assert str(refused.value).startswith(f"{field}: ")


def test_a_long_name_or_value_is_shown_in_part():
    with pytest.raises(Refusal) as refused:
        BodyReader(LearnBody).read(f'{{"attributes": {{"{"n" * 5000}": "{"v" * 5000}"}}, "label": "x"}}'.encode())
    assert len(str(refused.value)) < 600
