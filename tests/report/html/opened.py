"""A page in a browser, and what can be read back from it."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

ROWS = """
return [...document.querySelectorAll("#rows .line")].map((line) => ({
  name: line.querySelector(".name bdi").textContent,
  title: line.querySelector(".name bdi").title,
  level: line.getAttribute("aria-level"),
  expanded: line.getAttribute("aria-expanded"),
  small: line.querySelector(".name small")?.textContent ?? "",
  shape: line.querySelector(".cell.shape").textContent,
  size: line.querySelector(".cell.size").textContent,
  dead: line.querySelector(".cell.dead").textContent,
  bar: line.querySelector(".bar").getBoundingClientRect().width,
  pieces: [...line.querySelectorAll(".bar i")].map((piece) => {
    const bar = line.querySelector(".bar").getBoundingClientRect(), place = piece.getBoundingClientRect();
    return [place.left - bar.left, place.right - bar.left, piece.className];
  }),
}))
"""
DOCK = """
return Object.fromEntries([...document.querySelectorAll("#dock dl div")].map(
  (pair) => [pair.querySelector("dt").textContent, pair.querySelector("dd").textContent]))
"""


class Opened:
    """The browser; `open` shows a page afresh, the rest reads from it or acts on it."""

    def __init__(self, driver: Chrome, folder: Path) -> None:
        self.driver = driver
        self._folder = folder
        self._numbers = count()
        self._file = ""

    def open(
        self, page: str, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True
    ) -> None:
        """Show a page at a window size and in a colour scheme, with or without scripts."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._tell("Emulation.setDeviceMetricsOverride", metrics)
        self._tell("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._tell("Emulation.setScriptExecutionDisabled", {"value": not script})
        path = self._folder / f"page{next(self._numbers)}.html"
        path.write_text(page, encoding="utf-8")
        for log in ("performance", "browser"):
            self.driver.get_log(log)  # takes away what earlier pages left
        self._file = path.as_uri()
        self.driver.get(self._file)

    def _tell(self, command: str, what: dict[str, Any]) -> None:
        self.driver.execute_cdp_cmd(command, what)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def rows(self) -> list[dict[str, Any]]:
        """What each line that was made shows, and where its ink lies, in pixels."""
        return list(self.run(ROWS))

    def names(self) -> list[str]:
        return [row["name"] for row in self.rows()]

    def dock(self) -> dict[str, str]:
        """What is said of the line in focus."""
        return dict(self.run(DOCK))

    def count(self) -> str:
        return str(self.run("return document.getElementById('count').textContent"))

    def set(self, control: str, value: object) -> None:
        """As a hand does it: the value, then the event."""
        what = "checked" if isinstance(value, bool) else "value"
        self.run(
            f"const node = document.getElementById(arguments[0]); node.{what} = arguments[1];"
            "node.dispatchEvent(new Event('input', { bubbles: true }))",
            control,
            value,
        )

    def press(self, *keys: str) -> None:
        """Keys to whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def active(self) -> WebElement:
        return self.driver.switch_to.active_element

    def active_name(self) -> str:
        """The name on the line that has the focus."""
        script = "return document.activeElement.querySelector('.name bdi').textContent"
        return str(self.run(script))

    def rows_text(self) -> str:
        return str(self.run("return document.getElementById('rows').textContent"))

    def requests(self) -> list[str]:
        """Every address that was asked for, the page itself left out."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [
            str(message["params"]["request"]["url"])
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
        loaded = self.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        return [url for url in [*asked, *loaded] if unquote(url) != unquote(self._file)]

    def complaints(self) -> list[str]:
        """What the console says."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]
