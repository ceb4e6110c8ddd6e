"""The words of the tour, in the languages of its readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensafe.tour.korean import TEXTS
from tensafe.tour.stop import Stop


@dataclass(frozen=True)
class Words:
    """The fixed words around every stop."""

    title: str
    guides: str
    stands: str
    stands_not: str
    memory: str
    graph: str
    happens: str
    ours: str
    rules: str  # names of rules
    differs: str
    reach: str  # first byte, one past the last, bytes of the storage
    made: str  # the node that made a tensor
    leaf: str
    no_graph: str


WORDS = {
    "en": Words(
        title="The tour",
        guides="The guides say",
        stands="That stands.",
        stands_not="That does not stand as it is given.",
        memory="memory",
        graph="graph",
        happens="What happens",
        ours="With tensafe",
        rules="Found by {}",
        differs="here it differs; expected: ",
        reach="bytes {} to {} of {}",
        made="in the graph, by {}",
        leaf="a leaf that is trained",
        no_graph="in no graph",
    ),
    "ko": Words(
        title="둘러보기",
        guides="가이드의 조언",
        stands="맞는 말입니다.",
        stands_not="그대로는 맞지 않습니다.",
        memory="메모리",
        graph="그래프",
        happens="실제로 일어나는 일",
        ours="tensafe를 쓰면",
        rules="{} 규칙이 찾아냅니다",
        differs="이 환경에서는 다릅니다. 예상한 값: ",
        reach="{2}바이트 중 {0}~{1}",
        made="그래프 안, {}가 만듦",
        leaf="학습되는 leaf",
        no_graph="그래프 밖",
    ),
}


def in_language(stops: Sequence[Stop], language: str) -> tuple[Stop, ...]:
    """The same stops, told in this language; their code is the same everywhere."""
    if language == "en":
        return tuple(stops)
    return tuple(replace(stop, **TEXTS[stop.name]._asdict()) for stop in stops)
