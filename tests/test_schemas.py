"""The schemas: they admit what the experiment writes, and nothing that is only nearly so."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
from referencing.jsonschema import DRAFT202012

import experiment
import verify

ROOT = Path(__file__).resolve().parent.parent
SHARED = "scenario-result.schema.json"
SCHEMAS: dict[str, Any] = {
    path.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "schemas").iterdir())
    if path.name != "audit.schema.json"  # of another program
}
ARTIFACTS = ("results", "raw-output", "step-traces", "run-summary", "environment", "checkpoint-schema")

Place = tuple[str | int, ...]


def documents() -> dict[str, list[Any]]:
    """Return real artifacts by the stem of their schema, in parts that are validated alone.

    An array has a part for each item, and the traces, whose items are long, for each update.
    """
    found = {}
    for name in verify.FILES:
        document = verify.parse(name, (ROOT / "expected" / name).read_bytes())
        found[Path(name).stem] = [[item] for item in document] if isinstance(document, list) else [document]
    found["step-traces"] = [
        [trace | {"step_trace": [step]}] for [trace] in found["step-traces"] for step in trace["step_trace"]
    ]
    return found


@pytest.fixture(scope="module", params=[*ARTIFACTS, "scenario-result"])
def artifact(request: pytest.FixtureRequest, results: dict[tuple[int, str], Any]) -> tuple[Any, list[Any]]:
    """A validator, and the real documents that it is for."""
    name = request.param
    if name == "scenario-result":
        real = [{key: item for key, item in result.items() if key != "step_trace"} for result in results.values()]
        return experiment.artifact_validators()[name], json.loads(json.dumps(real))
    return experiment.artifact_validators()[name], documents()[name]


def containers(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every array and object in a document, with its place."""
    if isinstance(value, dict | list):
        yield place, value
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield from containers(item, (*place, key))


def may_be_null(place: Place) -> bool:
    """Return whether the contract lets the value at a place be absent."""
    return any(str(step).startswith(("first_divergent", "ATEN_", "MKL_")) for step in place)


def kind(value: object) -> str:
    """Return the JSON type of a value."""
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


OTHERS: list[Any] = [None, True, 0.5, "text", [], {}]


class TestEachSchema:
    def test_it_admits_the_real_artifact(self, artifact: tuple[Any, list[Any]]) -> None:
        """What the experiment writes fits."""
        validator, real = artifact

        assert real
        assert not [error.message for document in real for error in validator.iter_errors(document)]

    def test_it_misses_every_key(self, artifact: tuple[Any, list[Any]]) -> None:
        """A document without any one key of any of its objects does not fit."""
        validator, real = artifact
        admitted = []
        for document in real:
            for place, item in containers(document):
                for key in list(item) if isinstance(item, dict) else ():
                    without = {name: value for name, value in item.items() if name != key}
                    if validator.is_valid(replaced(document, place, without)):
                        admitted.append((place, key))

        assert admitted == []

    def test_it_refuses_another_key_everywhere(self, artifact: tuple[Any, list[Any]]) -> None:
        """A document with one more key in any of its objects does not fit."""
        validator, real = artifact
        admitted = [
            place
            for document in real
            for place, item in containers(document)
            if isinstance(item, dict) and validator.is_valid(replaced(document, place, item | {"another": 0}))
        ]

        assert admitted == []

    def test_it_refuses_another_type_everywhere(self, artifact: tuple[Any, list[Any]]) -> None:
        """A document with any one value replaced by one of another type does not fit."""
        validator, real = artifact
        admitted = []
        others = itertools.cycle(OTHERS)
        for document in real:
            places = [((), document)]
            for place, item in containers(document):
                pairs = item.items() if isinstance(item, dict) else enumerate(item)
                places += [((*place, key), value) for key, value in list(pairs)]
            for place, value in places:
                allowed = {kind(value)} | ({"null", "number", "string"} if may_be_null(place) else set())
                other = next(other for other in others if kind(other) not in allowed)
                if validator.is_valid(replaced(document, place, other)):
                    admitted.append((place, other))

        assert admitted == []


def replaced(document: Any, place: Place, value: Any) -> Any:
    """Return a copy of a document with another value at a place; what is not on the way there is shared."""
    if not place:
        return value
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[place[0]] = replaced(document[place[0]], place[1:], value)
    return copy


@pytest.mark.parametrize(
    ("stem", "place", "value"),
    [
        ("results", (0, "seed"), 2**32),
        ("results", (0, "seed"), -1),
        ("results", (0, "resumed_final_model_hash"), "A" * 64),
        ("results", (0, "resumed_final_model_hash"), "a" * 64 + "\n"),
        ("results", (0, "max_parameter_abs_error"), -1e-9),
        ("results", (0, "max_parameter_abs_error"), float("inf")),
        ("results", (0, "first_divergent_optimizer_step"), 0),
        ("results", (0, "rng_exact"), False),  # the first run is exact
        ("results", (0, "checkpoint_position"), "mid_accumulation"),
        ("results", (0, "interrupt_microstep_in_accumulation"), 1),
        ("raw-output", (0, "scenario"), "omit_model"),
        ("step-traces", (0, "step_trace", 0, "logical_step"), 0),
        ("step-traces", (0, "step_trace", 0, "last_batch_ids"), []),
        ("step-traces", (0, "step_trace", 0, "last_batch_ids"), [1, 2, 3, 1]),
        ("step-traces", (0, "step_trace", 0, "last_batch_ids"), [-1, 2, 3, 4]),
        ("run-summary", ("seeds",), [11, 11]),
        ("run-summary", ("scenarios",), []),
        ("run-summary", ("status",), "pass"),
        ("run-summary", ("configuration", "dropout_probability"), 1.0),
        ("run-summary", ("scenario_summary", "omit_rng", "exact_rate"), 1.5),
        ("run-summary", ("scenarios",), ["full_boundary"]),  # the summary has the others, too
        ("environment", ("device",), "cuda"),
        ("environment", ("torch_num_threads",), 2),
        ("environment", ("python",), "three"),
        ("environment", ("numeric_fingerprint", "tanh"), "0" * 63),
        ("checkpoint-schema", ("rng_components_in_fixture",), ["numpy", "python", "torch_cpu"]),
    ],
)
def test_values_are_as_narrow_as_the_truth(stem: str, place: Place, value: Any) -> None:
    """A value of the right type that cannot be true does not fit."""
    document = documents()[stem][0]

    assert not experiment.artifact_validators()[stem].is_valid(replaced(document, place, value))


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema."""
    for _, item in containers(schema):
        if isinstance(item, dict):
            yield item


class TestAllSchemas:
    def test_there_is_one_for_each_artifact(self) -> None:
        """The folder holds the seven schemas of the contract."""
        assert set(SCHEMAS) == {f"{stem}.schema.json" for stem in (*ARTIFACTS, "scenario-result")}

    @pytest.mark.parametrize("name", SCHEMAS)
    def test_it_is_a_schema(self, name: str) -> None:
        """It fits the metaschema of the draft that it names."""
        assert SCHEMAS[name]["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
        jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])

    @pytest.mark.parametrize("name", SCHEMAS)
    def test_every_object_is_closed_and_described(self, name: str) -> None:
        """No object takes further keys, and each of its properties, or what it refers to, has a description."""
        registry = referencing.Registry().with_resources(
            (key, DRAFT202012.create_resource(schema)) for key, schema in SCHEMAS.items()
        )
        resolver = registry.resolver(base_uri=name)
        objects = [schema for schema in subschemas(SCHEMAS[name]) if schema.get("type") == "object"]

        assert objects
        for schema in objects:
            assert schema["additionalProperties"] is False
            for key, item in schema["properties"].items():
                target = resolver.lookup(item["$ref"]).contents if "$ref" in item else item
                assert item.get("description") or target["description"], key

    def test_shared_definitions_stand_once(self) -> None:
        """Schemas refer to the definitions of one file, or to their own, and every definition is used."""
        used = {item["$ref"] for schema in SCHEMAS.values() for item in subschemas(schema) if "$ref" in item}
        own = {name for name, schema in SCHEMAS.items() if "$defs" in schema}

        assert {reference.partition("#")[0] for reference in used} == {"", SHARED}
        assert own == {SHARED, "run-summary.schema.json"}
        for name in own:
            for definition in SCHEMAS[name]["$defs"]:
                assert {f"#/$defs/{definition}", f"{SHARED}#/$defs/{definition}"} & used, definition

    @pytest.mark.parametrize("name", SCHEMAS)
    def test_inlining_changes_nothing(self, name: str) -> None:
        """References followed beforehand give the same violations as references followed on the way."""
        stem = name.removesuffix(".schema.json")
        registry = referencing.Registry().with_resources(
            (key, DRAFT202012.create_resource(schema)) for key, schema in SCHEMAS.items()
        )
        followed = jsonschema.Draft202012Validator(SCHEMAS[name], registry=registry)
        document = documents().get(stem, [{"seed": "11"}])[0]
        spoilt = [{key: [item] for key, item in row.items()} for row in document] if stem in ARTIFACTS[:3] else {"a": 1}

        for value in (document, spoilt):
            here, there = (
                sorted((error.json_path, error.message) for error in validator.iter_errors(value))
                for validator in (experiment.artifact_validators()[stem], followed)
            )
            assert here == there
        assert here


@pytest.fixture
def _fresh_validators() -> Iterator[None]:
    """Have the schemas read again, here and after."""
    experiment.artifact_validators.cache_clear()
    yield
    experiment.artifact_validators.cache_clear()


class TestRun:
    """`experiment.py` refuses to publish what does not fit."""

    def run(self, directory: Path) -> None:
        """Make a small run."""
        experiment.run_experiment(directory, [11], ["full_boundary"])

    @pytest.mark.parametrize(
        ("name", "place"),
        [
            ("results.csv", r"/0/rng_exact"),
            ("raw-output.txt", r"/0/seed"),
            ("step-traces.json", r"/0/step_trace/0/model_exact"),
            ("run-summary.json", r"/claim_boundary"),
            ("environment.json", r"/device"),
            ("checkpoint-schema.json", r"/not_claimed"),
        ],
    )
    def test_an_artifact_that_does_not_fit_is_not_published(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
    ) -> None:
        """The run ends with a message that names file, place and reason, and leaves nothing."""
        real = experiment.evaluate_seed

        def spoilt(*args: Any) -> Iterator[dict[str, Any]]:
            for result in real(*args):
                if name == "results.csv":
                    result["rng_exact"] = 1
                elif name == "step-traces.json":
                    result["step_trace"][0]["model_exact"] = None
                yield result

        monkeypatch.setattr(experiment, "evaluate_seed", spoilt)
        if name == "raw-output.txt":
            monkeypatch.setitem(experiment.LINE_FIELDS, "seed", "scenario")
        monkeypatch.setattr(
            experiment, "CLAIM_BOUNDARY", "All." if name.startswith("run") else experiment.CLAIM_BOUNDARY
        )
        if name == "environment.json":
            environment = experiment.runtime_environment() | {"device": "cuda"}
            monkeypatch.setattr(experiment, "runtime_environment", lambda: environment)
        if name == "checkpoint-schema.json":
            monkeypatch.setattr(experiment, "NOT_CLAIMED", ("anything",))

        with pytest.raises(experiment.ArtifactError, match=f"^{name} {place} does not fit its schema.*: ."):
            self.run(tmp_path / "results")

        assert list((tmp_path / "results").iterdir()) == []

    def test_the_message_counts_the_runs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The place of a later run's row is its number in the whole file, though each is validated alone."""
        real = experiment.evaluate_seed

        def spoilt(seed: int, *args: Any) -> Iterator[dict[str, Any]]:
            for result in real(seed, *args):
                yield result | ({"rng_exact": "yes"} if seed == 17 else {})

        monkeypatch.setattr(experiment, "evaluate_seed", spoilt)

        with pytest.raises(experiment.ArtifactError, match=r"^results.csv /1/rng_exact "):
            experiment.run_experiment(tmp_path, [11, 17], ["full_boundary"])

    def test_one_prints_nothing_that_does_not_fit(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """`one` ends with status 1 and one line that names place and reason."""
        real = experiment.evaluate_scenario(11, "omit_rng") | {"learning_rate_error": -1.0}
        monkeypatch.setattr(experiment, "evaluate_scenario", lambda seed, scenario: real)

        status = experiment.main(["one", "--seed", "11", "--scenario", "omit_rng"])

        out, err = capsys.readouterr()
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert "scenario-result /learning_rate_error does not fit its schema" in err

    @pytest.mark.usefixtures("_fresh_validators")
    def test_schemas_lie_beside_the_program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are found from any current directory."""
        monkeypatch.chdir(tmp_path)

        assert set(experiment.artifact_validators()) == {*ARTIFACTS, "scenario-result"}

    @pytest.mark.usefixtures("_fresh_validators")
    @pytest.mark.parametrize("content", [None, "{"])
    def test_a_schema_that_cannot_be_read_stops_the_run_before_any_training(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
    ) -> None:
        """It is named, and no seed is evaluated."""
        monkeypatch.setattr(experiment, "SCHEMAS", tmp_path)
        monkeypatch.setattr(experiment, "evaluate_seed", None)
        if content is not None:
            (tmp_path / "results.schema.json").write_text(content, encoding="utf-8")

        with pytest.raises(experiment.OutputError, match=r"cannot read the schema '.*results.schema.json'"):
            self.run(tmp_path / "results")
