"""A scripted session: open, diagnostics, hover, code actions, settings, and an end with status 0."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from checking.projects import FIXED, LOST
from lsp.client import Client, edited

pytest.importorskip("pygls")
SNAPSHOT = (
    "import torch\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    "best = model.state_dict()\nmodel(torch.ones(2)).sum().backward()\noptimizer.step()\n"
    "model.load_state_dict(best)\n"
)
PUBLISHED = "textDocument/publishDiagnostics"


def test_a_session(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        uri = client.open("a.py", LOST)
        told = client.said(PUBLISHED)
        (one,) = told["diagnostics"]
        assert (told["uri"], told["version"], one["source"], one["code"]) == (
            *(uri, 1, "tensafe"),
            "TS106 lost-write",
        )
        assert one["range"] == {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 16}}
        assert one["severity"] == 2
        assert "\n" in one["message"]
        assert one["relatedInformation"][0]["location"]["uri"] == uri

        fix, allow = client.actions(uri, 3)
        assert (fix["kind"], fix["isPreferred"], allow["title"]) == (
            *("quickfix", True),
            "tensafe: allow lost-write here",
        )
        assert edited(LOST, fix["edit"]["changes"][uri]) == FIXED
        assert edited(LOST, allow["edit"]["changes"][uri]).endswith("zero_()  # tensafe: allow lost-write\n")
        assert client.actions(uri, 0) == []
        (whole,) = client.actions(uri, 0, only=["source.fixAll"])
        assert edited(LOST, whole["edit"]["changes"][uri]) == FIXED

        assert client.hover(uri, 3, 0) == ("**`x`**: tensor\n\n- memory: its own, no view\n- graph: in none")
        assert client.hover(uri, 1, 0) == ""

        client.change(uri, 2, "x = (\n")
        client.change(uri, 3, FIXED)
        assert client.said(PUBLISHED) == {"uri": uri, "version": 3, "diagnostics": []}
        client.tell("textDocument/didSave", textDocument={"uri": uri})
        assert client.said(PUBLISHED)["diagnostics"] == []
        client.tell("textDocument/didClose", textDocument={"uri": uri})
        assert client.said(PUBLISHED)["diagnostics"] == []
    assert client.status == 0


def test_an_unsafe_fix_with_its_import(tmp_path: Path) -> None:
    with Client(tmp_path, "--select", "TS102") as client:
        uri = client.open("a.py", SNAPSHOT)
        (one,) = client.said(PUBLISHED)["diagnostics"]
        fix, _ = client.actions(uri, one["range"]["start"]["line"])
        assert (fix["title"].endswith(" (unsafe)"), fix["isPreferred"]) == (True, False)
        fixed = edited(SNAPSHOT, fix["edit"]["changes"][uri])
        assert fixed.startswith("import copy\nimport torch\n")
        assert "best = copy.deepcopy(model.state_dict())\n" in fixed
        assert client.actions(uri, one["range"]["start"]["line"], only=["source.fixAll"]) == []


@pytest.mark.parametrize(
    ("encodings", "codec", "units", "column"),
    [((), "utf-16-le", 2, 6), (("utf-8",), "utf-8", 1, 8), (("utf-32",), "utf-32-le", 4, 5)],
)
def test_columns_in_the_units_of_the_client(
    tmp_path: Path, encodings: tuple[str, ...], codec: str, units: int, column: int
) -> None:
    text = LOST.replace("x[x", "'𝒳'; x[x").replace("\n", "\r\n")
    with Client(tmp_path, encodings=encodings) as client:
        uri = client.open("a.py", text)
        (one,) = client.said(PUBLISHED)["diagnostics"]
        assert one["range"]["start"] == {"line": 3, "character": column}
        fix, allow = client.actions(uri, 3)
        assert edited(text, fix["edit"]["changes"][uri], codec, units) == text.replace(".zero_()", " = 0")
        assert edited(text, allow["edit"]["changes"][uri], codec, units).endswith("allow lost-write\r\n")
        assert client.hover(uri, 3, column).startswith("**`x`**: tensor")


def test_the_settings_of_the_project(tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.tensafe]\nseverity = {lost-write = "error"}\nexclude = ["old"]\n')
    with Client(tmp_path) as client:
        client.open("old/a.py", LOST)
        assert client.said(PUBLISHED)["diagnostics"] == []
        uri = client.open("a.py", LOST)
        assert client.said(PUBLISHED)["diagnostics"][0]["severity"] == 1
        settings.write_text("[tool.tensafe]\nnonsense = 1\n")
        client.tell("textDocument/didSave", textDocument={"uri": uri})
        assert client.said("window/showMessage")["message"] == (
            f"tensafe: {settings}: [tool.tensafe] has no key 'nonsense': there are select, ignore, "
            "per-file-ignores, exclude, severity, unused-allows"
        )
        settings.write_text('[tool.tensafe]\nignore = ["TS106"]\n')
        client.tell("textDocument/didSave", textDocument={"uri": uri})
        assert client.said(PUBLISHED)["diagnostics"] == []


def test_saving_a_helper_looks_again_at_the_documents_that_call_it(tmp_path: Path) -> None:
    helper = tmp_path / "layers.py"
    good, bad = (f"def head(x):\n    return {result}\n" for result in ("x[:1].clone()", "x[:1]"))
    train = (
        "import torch\nfrom layers import head\nw = torch.ones(3, requires_grad=True)\n"
        "y = torch.sigmoid(w)\nhead(y).zero_()\ny.sum().backward()\n"
    )
    with Client(tmp_path) as client:
        caller, other = client.open("train.py", train), client.open("other.py", LOST)
        assert [len(client.said(PUBLISHED)["diagnostics"]) for _ in (caller, other)] == [0, 1]
        helper.write_text(bad)  # it was not there
        uri = client.open("layers.py", bad)
        client.said(PUBLISHED)
        for text, number in ((bad, 1), (good, 0), (bad, 1)):
            helper.write_text(text)
            client.tell("textDocument/didSave", textDocument={"uri": uri})
            told = [client.said(PUBLISHED) for _ in range(2)]
            assert [(one["uri"], len(one["diagnostics"])) for one in told] == [(uri, 0), (caller, number)]
        client.tell("textDocument/didClose", textDocument={"uri": caller})
        client.said(PUBLISHED)
        client.tell("textDocument/didSave", textDocument={"uri": uri})
        client.tell("textDocument/didClose", textDocument={"uri": other})
        assert [client.said(PUBLISHED)["uri"] for _ in range(2)] == [uri, other]


def test_saving_the_settings_looks_again_at_all(tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    with Client(tmp_path) as client:
        uri = client.open("a.py", LOST)
        assert len(client.said(PUBLISHED)["diagnostics"]) == 1
        settings.write_text('[tool.tensafe]\nignore = ["TS106"]\n')
        client.tell("textDocument/didSave", textDocument={"uri": settings.as_uri()})
        assert [
            (one["uri"], one["diagnostics"]) for one in (client.said(PUBLISHED), client.said(PUBLISHED))
        ] == [
            (settings.as_uri(), []),
            (uri, []),
        ]


def test_without_pygls_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls").mkdir()
    (tmp_path / "pygls/__init__.py").write_text(
        "raise ModuleNotFoundError('No module named pygls', name='pygls')\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from tensafe.__main__ import main\nsys.exit(main(['lsp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tensafe: the language server needs pygls: pip install 'tensafe[lsp]'\n"


def test_a_mistake_in_the_options_is_said_before_serving(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tensafe", "lsp", "--select", "nonsense"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr[:44]) == (2, "tensafe: no rule is called 'nonsense': `tens")


def test_a_document_that_is_nowhere(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        uri = client.open("a.py", LOST)
        client.tell("textDocument/didClose", textDocument={"uri": uri})
        assert client.hover(uri, 3, 0) == ""
        assert client.actions(uri, 3) == []


def test_a_fix_in_another_file_is_not_made_here() -> None:
    from tensafe.lsp import actions
    from tensafe.lsp.looking import Wishes, look

    here = look("/a.py", LOST, 1, "utf-16", Wishes())
    (finding,) = here.findings
    assert finding.fix
    action = replace(finding.fix.action, site=replace(finding.at, path="/helper.py"))
    there = replace(here, findings=(replace(finding, fix=replace(finding.fix, action=action)),))
    place = here.positions.range_of(finding.at)
    titles = [
        [one.title for one in actions.actions(seen, "file:///a.py", place, None)] for seen in (here, there)
    ]
    assert titles == [
        ["tensafe: assign through the index", "tensafe: allow lost-write here"],
        ["tensafe: allow lost-write here"],
    ]
    assert actions.actions(there, "file:///a.py", place, [actions.FIX_ALL]) == []
