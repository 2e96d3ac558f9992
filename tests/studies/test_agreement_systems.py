"""Agreement on systems: coefficients over systems with human results."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from spicegraph_parser.errors import InputError
from spicegraph_scorer.core.significance import Resampling
from spicegraph_studies.agreement import agree_on_systems
from spicegraph_studies.agreement.reading import read_system_scores, read_system_table
from spicegraph_studies.pages.agreement import system_study

QUICK = Resampling(draws=60, seed=7)
HUMAN = {f"s{n}": {"M1": m1, "M2": m2} for n, (m1, m2) in enumerate([(0.2, 3.0), (0.3, 2.5), (0.5, 4.0), (0.6, None)])}
SCORES = {
    f"s{n}": {"SPICE": spice, "CIDEr": cider} for n, (spice, cider) in enumerate([(1, 2), (2, 1), (4, 3), (3, 5)])
}


def test_coefficients_and_p_values_are_scipys():
    found = agree_on_systems(HUMAN, SCORES, resampling=QUICK)
    for key, function in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("tau_b", stats.kendalltau)):
        expected = function([1, 2, 4, 3], [0.2, 0.3, 0.5, 0.6])
        cell = found.correlations["SPICE"]["M1"][key]
        assert cell.value == pytest.approx(expected.statistic)
        assert cell.p == pytest.approx(expected.pvalue)
    assert found.known("SPICE", "M2") == 3
    assert found.correlations["SPICE"]["M2"]["pearson"].value == pytest.approx(
        stats.pearsonr([1, 2, 4], [3, 2.5, 4])[0]
    )


def test_intervals_and_tests_come_with_it():
    generator = np.random.default_rng(0)
    human = {f"s{n}": {"M1": float(generator.normal())} for n in range(30)}
    scores = {name: {"good": row["M1"] + 0.1, "poor": float(generator.normal())} for name, row in human.items()}
    found = agree_on_systems(human, scores, resampling=Resampling(draws=300))
    (row,) = found.comparisons["M1"]
    assert row.first == pytest.approx(1)
    assert row.high < 0
    assert row.p_permutation < 0.01
    assert row.p_williams < 0.001
    cell = found.correlations["poor"]["M1"]["pearson"]
    assert cell.low < cell.value < cell.high


def test_unequal_and_few_systems_are_refused():
    with pytest.raises(InputError) as error:
        agree_on_systems({**HUMAN, "only human": {"M1": 1.0}}, {**SCORES, "only scored": {"SPICE": 1.0}})
    assert "system 'only human': has human results, but no scores" in str(error.value)
    assert "system 'only scored': has scores, but no human results" in str(error.value)
    with pytest.raises(InputError, match="at least 3 systems, there are 2"):
        agree_on_systems({"a": {"M1": 1.0}, "b": {"M1": 2.0}}, {"a": {"S": 1.0}, "b": {"S": 2.0}})


@pytest.mark.parametrize(
    "text",
    [
        "system,M1,M2\na,0.5,\nb , -,2\n",
        "system\tM1\tM2\na\t0.5\t\nb\t–\t2\n",
        '[{"system": "a", "M1": 0.5, "M2": null}, {"system": "b", "M1": null, "M2": 2}]',
        '{"a": {"M1": 0.5, "M2": null}, "b": {"M1": null, "M2": 2}}',
    ],
)
def test_tables_are_read_from_csv_and_json(tmp_path, text):
    path = tmp_path / "table"
    path.write_text(text)
    found = read_system_table(str(path))
    assert {name.strip(): row for name, row in found.items()} == {
        "a": {"M1": 0.5, "M2": None},
        "b": {"M1": None, "M2": 2.0},
    }


def test_the_scores_of_a_system_come_from_the_json_of_score(tmp_path):
    path = tmp_path / "mine.json"
    corpus = {
        "Bleu_1": 0.5,
        "SPICE": None,
        "SPICE_categories": {"All": {"f": 0.2}, "Color": {"f": 0.1}, "Size": {"f": None}},
    }
    path.write_text(json.dumps({"signature": {}, "corpus": corpus, "items": []}))
    assert read_system_scores(str(path), "mine") == {
        "mine": {"Bleu_1": 0.5, "SPICE": None, "SPICE_Color": 0.1, "SPICE_Size": None}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,M1\na,1\n", "names no column 'system'"),
        ("system,M1\na,1\na,2\n", "appears twice"),
        ("system,M1\na,good\n", r"line 2 \('a'\), M1: is 'good', expected a number"),
        ("system,M1\na,1,2\n", "line 2 does not have as many cells"),
        ("system,M1\n,1\n", "line 2, system: is missing"),
        ("system,M1\n", "contains no system"),
        ("[1]", "expected an object"),
        ('{"a": ', "is not JSON"),
        ("system,M1\na,nan\n", "expected a number"),
    ],
)
def test_bad_tables_give_one_clear_error(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_system_table(str(path))


def test_a_column_of_words_is_no_measure_but_what_length_alone_says():
    generator = np.random.default_rng(5)
    words = generator.integers(31, 90, size=12).astype(float)
    quality = generator.normal(size=12)
    human = {f"s{n}": {"M1": words[n] / 30 + quality[n], "words": words[n]} for n in range(12)}
    scores = {f"s{n}": {"good": quality[n] + words[n] / 50, "longest": words[n]} for n in range(12)}
    found = agree_on_systems(human, scores, resampling=QUICK)
    assert list(found.comparisons) == ["M1"]
    ranks = {name: stats.rankdata([row[name] for row in scores.values()]) for name in ("good", "longest")}
    ratings = stats.rankdata([row["M1"] for row in human.values()])
    rest = []
    for each in (ranks["good"], ratings):
        fit = stats.linregress(ranks["longest"], each)
        rest.append(each - fit.intercept - fit.slope * ranks["longest"])
    assert found.length["M1"][""] == pytest.approx(stats.spearmanr(words, ratings).statistic)
    assert found.length["M1"]["good"] == pytest.approx(np.corrcoef(*rest)[0, 1])
    assert found.length["M1"]["longest"] is None
    assert found.to_dict()["length"]["M1"]["length alone"] == found.length["M1"][""]
    facts = system_study(found, "human.csv").facts
    assert any(fact.startswith("Length alone: rank correlation of words and M1 ") for fact in facts)
    short = {name: row | {"words": 9.0} for name, row in human.items()}
    for table in (short, HUMAN):
        found = agree_on_systems(table, scores if table is short else SCORES, resampling=QUICK)
        assert found.length == {}
        assert "length" not in found.to_dict()
