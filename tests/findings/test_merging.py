"""Records of several processes as one."""

from __future__ import annotations

from tensafe.findings import CopyLine, Finding, NotChecked, Record, Site, Told, from_json, merge, to_json

HERE, THERE = Site("a.py", 1, 1, 1), Site("a.py", 2, 1, 2)


def found(site: Site, count: int = 1) -> Finding:
    return Finding("TS106", "lost", site, count=count)


def record(*findings: Finding, **more: object) -> Record:
    return Record("run", findings, **more)  # type: ignore[arg-type]


def test_what_one_process_saw_alone_has_no_name() -> None:
    merged = merge([Told(record(found(HERE, 3)))])
    assert merged.findings == (found(HERE, 3),)
    assert "processes" not in merged.summary


def test_identical_findings_are_one_with_all_who_saw_them() -> None:
    merged = merge(
        [
            Told(record(found(HERE))),
            Told(record(found(HERE, 2), found(THERE)), "worker 10"),
            Told(record(found(HERE)), "worker 2"),
        ]
    )
    both, one = merged.findings
    assert (both.count, both.processes) == (4, ("main process", "worker 2", "worker 10"))
    assert (one.count, one.processes, one.rank) == (1, ("worker 10",), None)
    assert merged.summary == {"findings": 2, "notices": 0, "processes": 3}


def test_a_finding_has_a_rank_when_one_rank_saw_it() -> None:
    ranks = [Told(record(found(HERE), found(THERE)), "rank 0", 0), Told(record(found(HERE)), "rank 1", 1)]
    everywhere, alone = merge(ranks).findings
    assert (everywhere.rank, alone.rank) == (None, 0)


def test_names_are_bounded() -> None:
    merged = merge([Told(record(found(HERE)), f"worker {number}") for number in range(20)])
    assert merged.findings[0].processes[-1] == "12 more"
    assert len(merged.findings[0].processes) == 9


def test_what_was_not_checked_and_copies_are_joined() -> None:
    def table(nbytes: int, needed: str) -> tuple[CopyLine, ...]:
        return (CopyLine(HERE, "clone", 1, nbytes, False, needed),)

    unknown = NotChecked("torch.func", "no hooks")
    merged = merge(
        [
            Told(record(not_checked=(unknown,), copies=table(8, "yes"))),
            Told(record(not_checked=(unknown, NotChecked("a", "b")), copies=table(4, "no")), "worker"),
        ]
    )
    assert merged.not_checked == (unknown, NotChecked("a", "b"))
    assert merged.copies == (CopyLine(HERE, "clone", 2, 12, False, "partly"),)


def test_who_saw_it_survives_the_record() -> None:
    merged = merge([Told(record(found(HERE)), "rank 0", 0), Told(record(found(HERE)), "rank 1", 1)])
    assert from_json(to_json(merged)) == merged
    assert '"processes"' not in to_json(record(found(HERE)))
