"""The reference: every public name is described in full, and has its place in it."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import linmax
from api_names import missing_parts, public_names, untyped_parts

NAMES = {name: value for name, value in public_names() if not name.startswith("types.")}  # aliases, in a table
DESCRIBED = {name: value for name, value in NAMES.items() if inspect.isclass(value) or inspect.isroutine(value)}
COUNTS = "mistakes trials updates curve"
FILES = "save load state from_state"
PREDICTIONS = "predict predict_proba predict_set"
# Public members of each class: what its page in the reference shows. Anything else begins with an underscore.
MEMBERS = {
    "Learner": f"{PREDICTIONS} {COUNTS} {FILES} learn learner options classes voters raters attributes weights scores rank "
    "explore explain wants_label ask panel check forget pending max_pending key",
    "VoteFusion": f"{PREDICTIONS} {FILES} fit partial_fit decision_function score report explain weights plot plot_reliability "
    "ask panel wants_label get_params set_params classes_ voters_ raters_ n_features_in_ labels_used_ normalizations is_open "
    "recent_rows",
    "StreamModel": f"predict predict_proba {COUNTS} {FILES} learn scores options classes attributes features weights pool "
    "decided repeats limit crowded explain",
    "LinearMaxClassifier": "fit partial_fit predict predict_proba predict_log_proba decision_function save load get_params "
    "set_params coef_ intercept_ mistakes_",
    "FusionClassifier": f"{PREDICTIONS} fit partial_fit predict_log_proba save load transform get_feature_names_out get_params "
    "set_params final_estimator mistakes_ weights_",
    "Trace": "bound regret plot consistent learned margins mistakes passes seen updates",
    "Evaluation": "add join rate of_class summary table to_dict state from_state auc balanced_accuracy calibration_error "
    "error log_loss majority majority_error mistakes rows",
}
# Values by name, of any type, as JSON or scikit-learn has them.
PLAIN_DATA = (
    "state(",
    "from_state(",
    "options(",
    "to_dict(",
    "get_params(",
    "set_params(",
    "fit(params",
    "(settled",
)
PAGE = Path(__file__).parents[1] / "docs" / "api" / "index.md"


@pytest.mark.parametrize("name", DESCRIBED)
def test_docstrings_are_whole(name):
    """Parameters, what is returned, an example, and a source or what to see also."""
    assert missing_parts(DESCRIBED[name]) == []


def test_other_names_are_constants_or_types():
    assert set(NAMES) - set(DESCRIBED) <= {
        "normalization.NORMALIZATIONS",
        "theory.adversaries.Adversary",
    }


def test_the_reference_lists_every_public_name():
    listed, module = set(), ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: linmax\.?(.*)", line):
            module = f"{found[1]}." if found[1] else ""
        elif found := re.fullmatch(r"   (\w+)", line):
            listed.add(module + found[1])
    listed = {name for name in listed if not name.startswith("river.") or name in NAMES}
    assert listed - {"rules.Rule"} == set(NAMES)


@pytest.mark.parametrize("name", MEMBERS)
def test_public_members_are_those_of_the_reference(name):
    own = [base for base in NAMES[name].__mro__ if base.__module__.startswith("linmax")]
    members = {member for base in own for member in vars(base) if not member.startswith("_")}
    requests = {member for member in members if re.fullmatch("set_.*_request", member)}  # metadata routing
    assert members - requests == set(MEMBERS[name].split())


@pytest.mark.parametrize("made", [linmax.Learner("perceptron"), linmax.StreamModel("perceptron"), linmax.VoteFusion()])
def test_public_attributes_of_instances_are_members_or_parameters(made):
    documented = set(MEMBERS[type(made).__name__].split()) | {*inspect.signature(type(made)).parameters}
    assert {name for name in dir(made) if not name.startswith("_")} <= documented


@pytest.mark.parametrize("name", DESCRIBED)
def test_public_signatures_are_typed(name):
    assert [part for part in untyped_parts(DESCRIBED[name]) if not part.startswith(PLAIN_DATA)] == []


def test_an_untyped_signature_is_noticed():
    def loose(x: Any, *rows: list[Any], n: int) -> dict[str, Any]:
        """Take and return anything."""

    assert [part.partition(":")[0] for part in untyped_parts(loose)] == ["(x", "(rows", "(return"]


def test_the_reference_lists_every_type():
    section = PAGE.read_text(encoding="utf-8").partition("## Types")[2].partition("\n## ")[0]
    listed = {name for name in re.findall(r"`(\w+)`", section) if name[0].isupper()}
    assert listed - {"Learner"} == set(linmax.types.__all__)


def test_a_bare_docstring_is_noticed():
    def bare(x: int) -> int:
        """Nothing but this line."""
        return x

    assert missing_parts(bare) == ["Parameters", "Returns", "Examples", "References"]


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("experts", linmax.instances),
        ("jury_problem", linmax.datasets.jury_problem),
        ("majority_problem", linmax.datasets.majority_problem),
    ],
)
def test_former_names_warn(former: str, present: object) -> None:
    with pytest.warns(DeprecationWarning, match=f"linmax.{former} is now linmax"):
        assert getattr(linmax, former) is present
