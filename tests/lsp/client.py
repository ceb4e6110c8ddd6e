"""A small client of the language server protocol: it asks, tells, and hears what the server says."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

SECONDS = 60.0


class Client:
    """A server in a process of its own; `with Client(folder) as client:` begins and ends a session."""

    def __init__(self, folder: Path, *arguments: str, encodings: tuple[str, ...] = ()) -> None:
        command = [sys.executable, "-m", "tensafe", "lsp", *arguments]
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._folder = folder
        self._encodings = list(encodings)
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Client:
        general = {"positionEncodings": self._encodings} if self._encodings else {}
        self.capabilities = self.ask(
            "initialize",
            processId=None,
            rootUri=self._folder.as_uri(),
            capabilities={"general": general, "textDocument": {}},
        )["capabilities"]
        self.tell("initialized")
        return self

    def __exit__(self, *problem: object) -> None:
        if problem[0] is None:
            self.ask("shutdown")
            self.tell("exit")
            self.status = self._process.wait(SECONDS)
        self._process.kill()
        self._process.communicate()

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params or None})
        answer = self._answers.get(timeout=SECONDS)
        assert answer["id"] == self._number, answer
        assert "error" not in answer, answer
        return answer["result"]

    def tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def said(self, method: str) -> Any:
        """The next message of this kind."""
        while True:
            message = self.messages.get(timeout=SECONDS)
            assert message["method"] != "end", "the server ended"
            if message["method"] == method:
                return message["params"]

    def open(self, name: str, text: str) -> str:
        """Open a document; its URI."""
        uri = (self._folder / name).as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return uri

    def change(self, uri: str, version: int, text: str) -> None:
        self.tell(
            "textDocument/didChange",
            textDocument={"uri": uri, "version": version},
            contentChanges=[{"text": text}],
        )

    def actions(self, uri: str, line: int, **context: Any) -> list[dict[str, Any]]:
        """The code actions on a line, from 0."""
        place = {"line": line, "character": 0}
        found = self.ask(
            "textDocument/codeAction",
            textDocument={"uri": uri},
            range={"start": place, "end": {**place, "character": 99}},
            context={"diagnostics": [], **context},
        )
        return list(found or [])

    def hover(self, uri: str, line: int, character: int) -> str:
        found = self.ask(
            "textDocument/hover", textDocument={"uri": uri}, position={"line": line, "character": character}
        )
        return str(found["contents"]["value"]) if found else ""

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            message = json.loads(stream.read(length))
            (self.messages if "method" in message else self._answers).put(message)
        for listener in (self.messages, self._answers):  # nobody waits for a server that has ended
            listener.put({"id": None, "method": "end", "error": "the server ended"})


def edited(text: str, edits: list[dict[str, Any]], encoding: str = "utf-16-le", units: int = 2) -> str:
    """The text after the edits of a code action."""
    lines = text.splitlines(keepends=True) or [""]

    def offset(place: dict[str, int]) -> int:
        line = lines[place["line"]] if place["line"] < len(lines) else ""
        before = line.encode(encoding)[: place["character"] * units].decode(encoding)
        return sum(map(len, lines[: place["line"]])) + len(before)

    for edit in sorted(edits, key=lambda one: offset(one["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text
