"""The memory page as a browser shows it: read back, filtered, walked with the keyboard, attacked."""

from __future__ import annotations

from typing import Any

import pytest

from report.html import samples
from report.html.opened import Opened
from tensafe.memory.map import MemoryMap
from tensafe.report.characters import printable
from tensafe.report.html import checkpoint_page, memory_page
from tensafe.report.html.wording import size

DOWN, UP, LEFT, RIGHT = "\ue015", "\ue013", "\ue012", "\ue014"
END, HOME, TAB, ESCAPE, ENTER = "\ue010", "\ue011", "\ue004", "\ue00c", "\ue007"
EVERY_SORT = samples.of_every_sort()


def focus_row(opened: Opened, name: str) -> None:
    opened.run(
        "[...document.querySelectorAll('#rows .line')]"
        ".find((line) => line.querySelector('.name bdi').textContent === arguments[0]).focus()",
        name,
    )


def contrast(first: str, second: str) -> float:
    """As the web's accessibility guidelines define it, of two `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour[4:-1].split(",")]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_storage_and_tensor_is_shown_with_its_bytes(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    shown = opened.names()
    sizes = {row["name"]: row["size"] for row in opened.rows()}
    for storage in EVERY_SORT.storages:
        for tensor in storage.tensors:
            assert shown.count(tensor.name) == 1
            assert sizes[tensor.name] == size(tensor.nbytes)
            focus_row(opened, tensor.name)
            said = opened.dock()
            assert said["Bytes"].split(" (")[0] == f"{tensor.nbytes:,}"
            assert said["Shape"] == (" × ".join(map(str, tensor.shape)) or "scalar")
            assert said["Stride"].strip("()") == ", ".join(map(str, tensor.strides))
            assert said["Dtype"] == tensor.dtype
            assert f"{storage.nbytes:,} bytes" in said["Storage"]
            assert all(note in said["Storage"] for note in storage.notes)
            if tensor.nbytes:
                assert said["Byte range"] == f"{tensor.extent.start:,} to {tensor.extent.stop:,}"
    assert opened.count() == "15 tensors in 12 storages"


def test_the_bars_are_to_scale(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    bars = {row["name"]: row["bar"] for row in opened.rows()}
    full = bars["planned.weight"]
    assert full > 300
    widest = 5 * 2**20
    for storage in EVERY_SORT.storages:
        for tensor in storage.tensors:
            assert bars[tensor.name] == pytest.approx(max(3, full * storage.nbytes / widest), abs=0.6)


def test_a_tensor_is_drawn_over_the_bytes_it_reaches(opened: Opened) -> None:
    opened.open(memory_page(MemoryMap("one", (samples.interleaved(),))))
    rows = {row["name"]: row for row in opened.rows()}
    pixels = rows["q"]["bar"] / (2 * 2**20)
    starts = [row * 65_536 * 4 for row in range(8)]
    expected = [(start * pixels, (start + 32_768 * 4) * pixels) for start in starts]
    assert [piece[:2] for piece in rows["q"]["pieces"]] == [
        pytest.approx(place, abs=0.6) for place in expected
    ]
    whole = rows["storage 3"]["pieces"]
    assert [piece[2] for piece in whole] == ["used", "dead", "used", "dead"] * 8 or whole[-1][2] == "used"
    dead = sum(stop - start for start, stop, kind in whole if kind == "dead")
    assert dead / rows["storage 3"]["bar"] == pytest.approx(0.25, abs=0.01)


def test_shared_and_dead_bytes_are_told_apart(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    rows = {row["name"]: row for row in opened.rows()}
    assert [piece[2] for piece in rows["storage 1"]["pieces"]] == ["many"]
    assert [piece[2] for piece in rows["storage 2"]["pieces"]] == ["used", "dead"]
    assert rows["storage 2"]["dead"] == "3.0 MiB"
    assert "mixed" in rows["every_other"]["pieces"][0][2]
    focus_row(opened, "columns")
    assert opened.dock()["Shares bytes with"] == "whole, whole[10:20], transposed"


def test_finely_strided_neighbours_are_told_from_those_that_share(opened: Opened) -> None:
    rows = 1_000
    even = samples.tensor("x[::2]", shape=(rows,), strides=(2,))
    odd = samples.tensor("x[1::2]", shape=(rows,), strides=(2,), offset=1)
    head = samples.tensor("x[:1]", shape=(1,))
    crowd = [samples.tensor(f"y{number}", shape=(1,), offset=number) for number in range(40)]
    few = samples.storage("few", rows * 8, even, odd, head)
    many = samples.storage("many", rows * 8, odd, *crowd)
    opened.open(memory_page(MemoryMap("strided", (few, many))))
    focus_row(opened, "x[::2]")
    assert opened.dock()["Shares bytes with"] == "x[:1]"
    focus_row(opened, "x[:1]")
    assert opened.dock()["Shares bytes with"] == "x[::2]"
    focus_row(opened, "y3")
    assert "Shares bytes with" not in opened.dock()
    assert opened.dock()["May share bytes with"] == "x[1::2]"


def test_both_ends_of_a_long_name_show(opened: Opened) -> None:
    names = ["layer." + "x" * 5_000 + ".weight", "layer." + "x" * 5_000 + ".bias", "😀" * 200 + "end"]
    tensors = [samples.tensor(name, shape=(4,), offset=at * 4) for at, name in enumerate(names)]
    opened.open(memory_page(MemoryMap("long", (samples.storage("storage 1", 48, *tensors),))))
    ends = opened.run(
        "return [...document.querySelectorAll('.name bdi .tail')].map((tail) => {"
        "const cell = tail.closest('.name').getBoundingClientRect(), place = tail.getBoundingClientRect();"
        "return [tail.textContent, place.width > 0 && place.right <= cell.right + 1]; })"
    )
    assert [[words[-8:], inside] for words, inside in ends] == [["x.weight", True], ["xxx.bias", True]]
    assert opened.names()[3] == "😀" * 80 + "…" + "😀" * 77 + "end"


def test_bytes_that_are_not_allocated_do_not_count_in_the_legend(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    allocated = [storage for storage in EVERY_SORT.storages if storage.device != "meta"]
    plain = [one for storage in allocated for one in storage.tensors if one.kind == "tensor"]
    legend = opened.run("return [...document.querySelectorAll('.legend li')].map((one) => one.textContent)")
    assert f" tensor {size(sum(one.nbytes for one in plain))}" in legend


def test_folds_are_open_on_paper(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    state = "return [...document.querySelectorAll('details')].map((fold) => fold.open)"
    before = opened.run(state)
    assert set(before) == {True, False}
    opened.run("dispatchEvent(new Event('beforeprint'))")
    assert set(opened.run(state)) == {True}
    opened.run("dispatchEvent(new Event('afterprint'))")
    assert opened.run(state) == before


def test_the_filter_finds_any_name(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    opened.set("query", "HEAD.weight")
    assert opened.names() == ["fc.weight"]
    assert opened.count() == "1 of 15 tensors, in 1 storage"
    opened.set("query", "no such name")
    assert opened.rows_text() == "No storage or tensor fits."
    opened.set("query", "")
    assert opened.count() == "15 tensors in 12 storages"


@pytest.mark.parametrize(
    ("box", "names"),
    [
        ("shares", ["storage 1", "whole", "whole[10:20]", "columns", "transposed"]),
        (
            "dead",
            ["storage 2", "table[:2]", "storage 3", "q", "k", "storage 12", "every_other", "storage 11"],
        ),
        ("tied", ["storage 1", "whole[10:20]", "fc.weight"]),
    ],
)
def test_the_boxes_narrow_the_list(opened: Opened, box: str, names: list[str]) -> None:
    opened.open(memory_page(EVERY_SORT))
    opened.set(box, True)
    assert opened.names() == names


def test_the_order_can_be_chosen(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    roots = [row["name"] for row in opened.rows() if row["level"] == "1"]
    assert roots[:4] == ["planned.weight", "storage 1", "storage 2", "storage 3"]
    opened.set("order", "dead")
    roots = [row["name"] for row in opened.rows() if row["level"] == "1"]
    assert roots[:4] == ["storage 2", "storage 3", "storage 12", "storage 11"]
    opened.set("order", "name")
    roots = [row["name"] for row in opened.rows() if row["level"] == "1"]
    assert roots[:3] == ["empty", "storage 12", "fc.weight"]


def test_small_storages_can_be_drawn_at_full_width(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    opened.set("scale", "own")
    widths = {round(row["bar"]) for row in opened.rows()}
    assert len(widths) == 1
    assert widths.pop() > 300


def test_the_keyboard_reaches_every_line(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    opened.run("document.getElementById('scale').focus()")
    opened.press(TAB)
    assert opened.active().get_attribute("role") == "row"
    opened.press(DOWN)
    assert opened.active_name() == "storage 1"
    opened.press(LEFT)
    assert opened.active().get_attribute("aria-expanded") == "false"
    assert "whole" not in opened.names()
    opened.press(RIGHT, RIGHT)
    assert opened.active_name() == "whole"
    opened.press(DOWN, LEFT)
    assert opened.active_name() == "storage 1"
    opened.press(END)
    assert opened.active_name() == "empty"
    opened.press(HOME)
    assert opened.active_name() == "planned.weight"
    assert opened.dock()["Shape"] == str(5 * 2**18)
    opened.press(ESCAPE)
    assert opened.dock() == {}
    opened.press("/")
    assert opened.active().get_attribute("id") == "query"


def test_one_tab_stop_for_the_list_and_names_for_all_controls(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    opened.press(TAB)
    assert opened.run("return document.querySelectorAll('#rows [tabindex=\"0\"]').length") == 1
    nameless = opened.run(
        "return [...document.querySelectorAll('input, select')].filter("
        "(node) => !node.labels.length && !node.getAttribute('aria-label')).length"
    )
    assert nameless == 0
    assert opened.run("return document.querySelector('.bar').getAttribute('aria-label')")


def test_hostile_names_are_text(opened: Opened) -> None:
    opened.open(checkpoint_page(samples.hostile(), globals=[(samples.HOSTILE_NAMES[0], 1, "evil", True)]))
    titles = {row["title"] for row in opened.rows()}
    assert {printable(name) for name in samples.HOSTILE_NAMES} <= titles
    assert opened.run("return document.querySelectorAll('img, b, i:not(.bar i), iframe').length") == 0
    assert opened.run("return document.scripts.length") == 2
    assert opened.run("return window.broken === undefined")
    opened.set("query", "onerror")
    focus_row(opened, samples.HOSTILE_NAMES[0])
    opened.press(UP, DOWN)
    assert opened.run("return document.querySelectorAll('img').length") == 0
    longest = max(opened.names(), key=len)
    assert len(longest) <= 161
    assert opened.complaints() == []
    assert opened.requests() == []


def test_the_policy_keeps_what_is_smuggled_in_from_running(opened: Opened) -> None:
    opened.open(memory_page(EVERY_SORT))
    opened.run(
        "const script = document.createElement('script'); script.textContent = 'window.broken = 1';"
        "document.body.append(script);"
        "document.body.insertAdjacentHTML('beforeend', '<b onclick=\"window.broken = 1\" id=smuggled>x</b>');"
        "document.getElementById('smuggled').click()"
    )
    assert opened.run("return window.broken === undefined")


def test_nothing_is_asked_for_and_nothing_complained_of(opened: Opened) -> None:
    for memory in (EVERY_SORT, MemoryMap("nothing", ())):
        opened.open(memory_page(memory))
        for box in ("shares", "dead", "tied"):
            opened.set(box, True)
        assert opened.requests() == []
        assert opened.complaints() == []


def test_ten_thousand_tensors_are_all_there(opened: Opened) -> None:
    memory = samples.many(10_000)
    opened.open(memory_page(memory))
    assert opened.count() == f"10,000 tensors in {len(memory.storages):,} storages"
    assert len(opened.rows()) < 1_000
    last = memory.storages[-1].tensors[0].name
    opened.set("query", last)
    assert last in opened.names()
    opened.set("query", "")
    opened.run("document.querySelector('#rows .line').focus()")
    opened.press(END)
    assert opened.active_name() == last
    assert opened.complaints() == []


def test_a_storage_of_ten_thousand_tensors_starts_closed_among_others(opened: Opened) -> None:
    slices = (samples.tensor(f"flat[{number}]", shape=(4,), offset=number * 4) for number in range(10_000))
    flat = samples.storage("storage 1", 160_000, *slices)
    others = [samples.storage(f"storage {n}", 8, samples.tensor(f"x{n}", shape=(2,))) for n in range(2, 9)]
    opened.open(memory_page(MemoryMap("flat", (flat, *others))))
    assert len(opened.names()) == 8
    opened.set("query", "flat[9999]")
    assert opened.names() == ["storage 1", "flat[9999]"]


def test_without_a_script_the_table_is_there(opened: Opened) -> None:
    opened.open(memory_page(samples.many(1_000)), script=False)
    cells: list[Any] = opened.driver.find_elements("css selector", "#plain tbody tr")
    assert len(cells) == 200
    largest = max(samples.many(1_000).storages, key=lambda storage: storage.nbytes)
    text = opened.driver.find_element("id", "plain").text
    assert largest.tensors[0].name in text
    assert not opened.driver.find_element("id", "drawing").is_displayed()
    assert opened.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_either_scheme(opened: Opened, dark: bool) -> None:
    opened.open(memory_page(EVERY_SORT), dark=dark)
    paper = opened.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert (paper != "rgb(255, 255, 255)") is dark
    for selector in ("body", ".faint", ".cell.size", ".cell.dead", ".meaning", "summary", ".heads", "button"):
        colour = opened.run("return getComputedStyle(document.querySelector(arguments[0])).color", selector)
        assert contrast(colour, paper) >= 4.5, selector
    for kind in ("parameter", "gradient", "optimizer", "buffer", "tensor", "array", "many", "used"):
        script = "const i = document.querySelector('.swatch'); i.className = `swatch ${arguments[0]}`;"
        colour = opened.run(script + "return getComputedStyle(i).backgroundColor", kind)
        assert contrast(colour, paper) >= 3, kind


@pytest.mark.parametrize("sample", [samples.of_every_sort, samples.hostile])
@pytest.mark.parametrize("script", [True, False])
def test_a_narrow_window_scrolls_only_downwards(opened: Opened, sample: Any, script: bool) -> None:
    page = checkpoint_page(sample(), globals=[("os.system" * 40, 1, "runs", True)])
    opened.open(page, 400, 800, script=script)
    width = opened.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]["width"]
    assert width <= 400


def test_the_page_rounds_as_the_text_does(opened: Opened) -> None:
    sizes = [
        0,
        999,
        1_023,
        1_024,
        1_075,
        102_348,
        102_349,
        138_753,
        1_048_063,
        1_048_064,
        2**40 + 1,
        2**60,
        2**70,
    ]
    held = tuple(samples.storage(f"storage {nbytes}", nbytes) for nbytes in sizes)
    opened.open(memory_page(MemoryMap("sizes", held)))
    shown = {row["name"]: row["size"] for row in opened.rows()}
    assert shown == {f"storage {nbytes}": size(nbytes) for nbytes in sizes}
