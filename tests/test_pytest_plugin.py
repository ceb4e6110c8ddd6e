"""`pytest --tensafe`, in sessions of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import pytest, torch

    def spoil():
        weight = torch.ones(3, requires_grad=True)
        gate = weight.tanh()
        gate.data.mul_(2)
        gate.sum().backward()

    def lose():
        x = torch.ones(3)
        x[x > 0].zero_()

    def test_fine():
        assert torch.ones(2).add_(1).sum() == 4

    def test_spoils():
        spoil()

    @pytest.mark.parametrize("number", [1, 2])
    def test_loses(number):
        lose()

    @pytest.mark.tensafe(allow=["TS202"])
    def test_allowed():
        spoil()

    @pytest.mark.tensafe(allow="all")
    def test_all_allowed():
        spoil()

    def test_fails():
        lose()
        assert 0

    @pytest.fixture
    def spoiled():
        spoil()

    def test_fixture(spoiled):
        pass

    @pytest.fixture
    def broken():
        raise KeyError("x")

    def test_setup(broken):
        pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs a session with the plugin, whether tensafe is installed or only importable."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def session(*options: str, tests: str = TESTS) -> pytest.RunResult:
        pytester.makepyfile(test_it=tests)
        return pytester.runpytest_subprocess("-p", "tensafe.pytest_plugin", *options)

    return session


PLAIN = {"passed": 7, "failed": 1, "errors": 1}


def test_without_the_option_nothing_is_watched(run) -> None:
    result = run()
    result.assert_outcomes(**PLAIN)
    result.stdout.no_fnmatch_line("*TS*")
    result.stdout.no_fnmatch_line("*tensafe =*")


def test_findings_are_told_with_their_tests_and_fail_nothing(run) -> None:
    result = run("--tensafe", ".")
    result.assert_outcomes(**PLAIN)
    result.stdout.fnmatch_lines(
        [
            "*= tensafe =*",
            "error[[]TS202[]] silent-gradient-corruption:*",
            "*(seen 2 times by test_it.py::test_fixture,",
            "*test_it.py::test_spoils)",
            "error[[]TS106[]] lost-write:*",
            "*(seen 3 times by test_it.py::test_fails,*",
            "tensafe: 2 errors in test_it.py",
        ]
    )
    result.stdout.no_fnmatch_line("*allowed*")


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_errors_fail_their_tests_when_asked(run, workers: tuple[str, ...]) -> None:
    result = run("--tensafe=error", *workers)
    result.assert_outcomes(passed=3, failed=5, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*tensafe: silent-gradient-corruption*",
            "*= tensafe =*",
            "*(seen 2 times by test_it.py::test_fixture,",
            "*short test summary*",
        ]
    )
    result.stdout.fnmatch_lines_random(
        [
            "FAILED test_it.py::test_spoils*tensafe: silent-gradient-corruption*",
            "FAILED test_it.py::test_loses*1*tensafe: lost-write*",
            "FAILED test_it.py::test_fails*assert 0*",
        ]
    )


def test_select_and_ignore(run) -> None:
    result = run("--tensafe=error", "--tensafe-select", "TS1", "-k", "spoils or loses")
    result.assert_outcomes(passed=1, failed=2, deselected=6)
    result = run("--tensafe=error", "--tensafe-ignore", "lost-write", "-k", "spoils or loses")
    result.assert_outcomes(passed=2, failed=1, deselected=6)


def test_nothing_found_is_said(run) -> None:
    run("--tensafe", "-k", "fine").stdout.fnmatch_lines(["*= tensafe =*", "nothing found in 1 test"])


def test_a_session_without_torch_stays_without_it(run) -> None:
    tests = """
        import sys
        def test_torch_is_not_there():
            assert "torch" not in sys.modules
    """
    run("--tensafe", tests=tests).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("options", "marker", "words"),
    [
        (["--tensafe", "--tensafe-select", "TS9"], "", "*TS9*"),
        (["--tensafe"], '@pytest.mark.tensafe(allow=["nothing"])', "*test_it.py::test_a*nothing*"),
        (["--tensafe"], '@pytest.mark.tensafe("lost-write")', "*test_it.py::test_a*allow=*"),
        (["--tensafe"], '@pytest.mark.tensafe(alow=["lost-write"])', "*test_it.py::test_a*allow=*"),
        (["--tensafe"], "@pytest.mark.tensafe(allow=106)", "*test_it.py::test_a*allow=*"),
        (["--tensafe=eror"], "", "*--tensafe/--tensafe=warn/--tensafe=error: *'eror'"),
    ],
)
def test_mistakes_are_told_before_any_test(run, options: list[str], marker: str, words: str) -> None:
    result = run(*options, tests=f"import pytest\n{marker}\ndef test_a(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_failure_shows_no_frame_of_ours(run) -> None:
    tests = """
        import torch, unittest

        def test_plain():
            torch.ones(2).add_(torch.ones(3))

        def test_chained():
            try:
                torch.ones(2).view(5)
            except RuntimeError as error:
                raise KeyError("theirs") from error

        class TestUnit(unittest.TestCase):
            def test_method(self):
                torch.ones(2).view(5)
    """
    result = run("--tensafe", tests=tests)
    result.assert_outcomes(failed=3)
    result.stdout.no_fnmatch_line("*tensafe/*.py*")
    result.stdout.fnmatch_lines(["E*RuntimeError: shape '[[]5[]]' is invalid for input of size 2"] * 2)


EXPECTED = """
    import pytest, torch

    def lose():
        x = torch.ones(3)
        x[x > 0].zero_()

    @pytest.mark.xfail
    def test_passes():
        lose()

    @pytest.mark.xfail(strict=True)
    def test_passes_but_must_not():
        lose()

    @pytest.mark.xfail(raises=KeyError)
    def test_passes_instead_of_an_error():
        lose()

    @pytest.mark.xfail
    def test_fails():
        lose()
        assert 0

    @pytest.mark.xfail
    @pytest.mark.tensafe(allow=["lost-write"])
    def test_is_allowed():
        lose()
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_a_finding_is_no_expected_failure(run, pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = run("--tensafe=error", "--junitxml=out.xml", *workers, tests=EXPECTED)
    result.assert_outcomes(failed=3, xfailed=1, xpassed=1)
    assert "passes unexpectedly" not in (pytester.path / "out.xml").read_text()
    result.stdout.fnmatch_lines_random(
        [f"FAILED test_it.py::test_passes{name}*tensafe: lost-write*" for name in ("", "_but*", "_inst*")]
    )
    run("--tensafe", *workers, tests=EXPECTED).assert_outcomes(failed=1, xfailed=1, xpassed=3)


def test_a_unittest_that_ends_otherwise_ends_so_with_findings_too(run) -> None:
    tests = """
        import unittest, torch

        def lose():
            x = torch.ones(3)
            x[x > 0].zero_()

        class TestUnit(unittest.TestCase):
            def test_skips(self):
                lose()
                self.skipTest("not here")

            @unittest.expectedFailure
            def test_fails_as_expected(self):
                lose()
                self.fail()

            def test_fails(self):
                lose()
                self.assertEqual(1, 2)

            def test_passes(self):
                lose()
    """
    result = run("--tensafe=error", tests=tests)
    result.assert_outcomes(failed=2, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines_random(
        ["FAILED test_it.py::*test_fails - Assert*1 != 2*", "FAILED test_it.py::*test_passes*tensafe: lost*"]
    )


def test_a_native_traceback_is_that_of_plain_pytest(run) -> None:
    tests = """
        import torch

        def test_plain():
            torch.ones(2).add_(torch.ones(3))
    """

    def traceback(*options: str) -> list[str]:
        lines = run("--tb=native", *options, tests=tests).outlines
        start = next(number for number, line in enumerate(lines) if line.startswith("Traceback"))
        end = next(number for number, line in enumerate(lines) if line.startswith("RuntimeError"))
        return lines[start : end + 1]

    assert traceback("--tensafe") == traceback()
