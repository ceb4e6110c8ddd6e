"""The tour as Markdown, in its languages; its claims are run by the tests and by `tensafe tour`."""

from __future__ import annotations

from tensafe.tour import STOPS
from tensafe.tour.languages import WORDS, Words, in_language
from tensafe.tour.stop import Stop

HEADS = {
    "en": """\
`tensafe tour` runs all of this on your machine, and draws where the bytes lie; `--only NAME` runs one.
A line that ends in `#> value` says what it gives. ([한국어](tour.ko.md))""",
    "ko": """\
`tensafe tour --lang ko`는 이 모두를 여러분의 환경에서 실행하고 바이트가 어디에 있는지 그려 줍니다.
`--only NAME`은 하나만 실행합니다. `#> value`로 끝나는 줄은 그 줄이 주는 값을 말합니다.
([English](tour.md))""",
}


def page(language: str) -> str:
    """The whole tour as one page."""
    words = WORDS[language]
    stops = (_section(stop, words) for stop in in_language(STOPS, language))
    return "\n\n".join([f"# {words.title}", HEADS[language], *stops]) + "\n"


def _section(stop: Stop, words: Words) -> str:
    verdict = words.stands if stop.holds else words.stands_not
    rules = ", ".join(f"[{name}](rules/{name}.md)" for name in stop.rules)
    parts = [
        f"## {stop.title} {{ #{stop.name} }}",
        f"{words.guides}: {stop.says} *{verdict}*",
        _code(stop.code),
        f"{words.happens}: {stop.happens}",
        f"{words.ours}:",
        _code(stop.call),
        words.rules.format(rules) if rules else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _code(text: str) -> str:
    return f"```python\n{text.strip()}\n```"
