"""A headless browser for the pages; without one their tests are skipped, but never in CI."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from report.html.opened import Opened

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


def give_up(reason: str) -> NoReturn:
    """A browser is a convenience on a developer's machine and a must where a change is judged."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def opened() -> Iterator[Opened]:
    """One browser for all tests of a worker, with an empty profile of its own."""
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
    except ImportError:
        give_up("selenium is not installed")
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        give_up("no chromium and chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        try:
            chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        except WebDriverException as error:
            give_up(f"the browser does not start: {(error.msg or '').splitlines()[:1]}")
        try:
            yield Opened(chrome, Path(folder))
        finally:
            chrome.quit()
