"""`tensafe lsp`: the language server, for editors."""

from __future__ import annotations

from collections.abc import Sequence

from tensafe.cli.options import Parser, add_rules, flat
from tensafe.errors import TensafeError

DESCRIPTION = """\
Speak the language server protocol over standard input and output: findings while you type, what is known
of the tensor under the cursor, fixes and `# tensafe: allow` as code actions. Editors start it.
"""
MISSING = "the language server needs pygls: pip install 'tensafe[lsp]'"


def carry_out(argv: Sequence[str]) -> int:
    """Serve until the client leaves."""
    parser = Parser("lsp", description=DESCRIPTION)
    add_rules(parser)
    parser.add_argument("--notices", action="store_true", help="show notices too: true, and often meant")
    parser.add_argument("--stdio", action="store_true", help="the default; some editors pass it")
    chosen = parser.parse_args(argv)
    from tensafe.rules._loader import select

    names = flat(chosen.select), flat(chosen.ignore)
    select(*names)
    try:
        from tensafe.lsp.looking import Wishes
        from tensafe.lsp.server import server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise TensafeError(MISSING) from None
    server(Wishes(*names, notices=chosen.notices)).start_io()
    return 0
