"""The server: which message of the client leads to what."""

from __future__ import annotations

import asyncio
import os

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from tensafe import __version__
from tensafe.checking.config import FILE as SETTINGS
from tensafe.errors import TensafeError
from tensafe.lsp.actions import FIX_ALL, actions
from tensafe.lsp.diagnostics import diagnostics
from tensafe.lsp.looking import Looked, Wishes, look
from tensafe.static.hovering import Known, known_at

SECONDS_AFTER_A_KEY = 0.15


class Server(LanguageServer):
    """Keeps what was last found in each open document."""

    def __init__(self, wishes: Wishes) -> None:
        super().__init__("tensafe", __version__)
        self._wishes = wishes
        self._looked: dict[str, Looked] = {}
        self._told: set[str] = set()

    def look(self, uri: str) -> Looked | None:
        """What is found in a document as it is now; None where the settings are wrong, which is told once.

        None, too, for one that is not open and that the disk does not have.
        """
        document = self.workspace.get_text_document(uri)
        known = self._looked.get(uri)
        try:
            source = document.source
        except (OSError, ValueError):
            return None
        if known is not None and known.text == source and known.version == document.version:
            return known
        encoding = self.workspace.position_encoding
        try:
            looked = look(
                document.path or uri,
                source,
                document.version,
                str(getattr(encoding, "value", encoding)),
                self._wishes,
            )
        except TensafeError as error:  # a mistake in the project's settings
            self._complain(str(error))
            return None
        self._looked[uri] = looked
        return looked

    def publish(self, uri: str) -> None:
        """Tell the client what is found in a document."""
        looked = self.look(uri)
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri,
                diagnostics=diagnostics(looked) if looked else [],
                version=looked.version if looked else None,
            )
        )

    def publish_callers(self, uri: str) -> None:
        """Look again at the other open documents that call a saved file, or at all when it has settings."""
        path = self.workspace.get_text_document(uri).path
        for other, looked in list(self._looked.items()):
            if other != uri and (path in looked.consulted or os.path.basename(path) == SETTINGS):
                self.forget(other)
                self.publish(other)

    def forget(self, uri: str) -> None:
        """The document was closed, or its settings may have changed."""
        self._looked.pop(uri, None)

    def _complain(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"tensafe: {words}"))


def server(wishes: Wishes) -> Server:
    """A server that answers; `start_io()` lets it."""
    made = Server(wishes)
    _listen(made)
    _answer(made)
    return made


def _listen(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(SECONDS_AFTER_A_KEY)
        if server.workspace.get_text_document(uri).version == version:  # no other key since
            server.publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.forget(params.text_document.uri)  # files that it calls may have been changed elsewhere
        server.publish(params.text_document.uri)
        server.publish_callers(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.forget(uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


def _answer(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        looked = server.look(params.text_document.uri)
        if looked is None:
            return None
        known = known_at(looked.path, looked.text, *looked.positions.place(params.position))
        return _shown(known, looked) if known else None

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL]),
    )
    def offer(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        looked = server.look(uri)
        only = params.context.only
        kinds = None if only is None else [str(getattr(kind, "value", kind)) for kind in only]
        return actions(looked, uri, params.range, kinds) if looked else []


def _shown(known: Known, looked: Looked) -> types.Hover:
    lines = [f"**`{known.name}`**: {known.kind}", *(f"- {fact}" for fact in known.facts)]
    return types.Hover(
        contents=types.MarkupContent(types.MarkupKind.Markdown, "\n".join([lines[0], "", *lines[1:]])),
        range=looked.positions.range_of(known.site),
    )
